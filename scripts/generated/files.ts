/** The files, and parts of files, that are made of the tables in the code. */
import { callsText } from './calls.ts'
import { clientCallsText } from './client-calls.ts'
import { dashboard } from './dashboard.ts'
import { entitiesTable, valuesTable } from './entities.ts'
import { codesTable, failuresTable } from './errors.ts'
import { allLimits, limitsTable, taskLimits } from './limits.ts'
import { withBlock } from './marked-block.ts'
import { metricsTable } from './metrics.ts'
import { shapesText } from './shapes.ts'
import { allVariables, exampleOf, variablesTable, withPassedVariables } from './variables.ts'

/** By path: the content that the file should have, from the one that it has. */
export const generatedFiles: Readonly<Record<string, (page: string) => string>> = {
  '.env.example': () => exampleOf(allVariables()),
  'docker-compose.yml': page => withPassedVariables(page, allVariables()),
  'docs/bad-input.md': page => withBlock(page, 'limits', limitsTable(allLimits)),
  'docs/http-reference.md': page =>
    withBlocks(page, {
      calls: callsText,
      entities: entitiesTable,
      values: valuesTable,
      codes: codesTable,
      failures: failuresTable,
      limits: () => limitsTable(taskLimits),
    }),
  'docs/operations.md': page => withBlocks(page, { variables: () => variablesTable(allVariables()), metrics: metricsTable }),
  'packages/client/src/generated/calls.ts': clientCallsText,
  'packages/client/src/generated/shapes.ts': shapesText,
  'ops/grafana/rivulet.json': dashboard,
}

function withBlocks(page: string, blocks: Record<string, () => string>): string {
  return Object.entries(blocks).reduce((text, [name, textOf]) => withBlock(text, name, textOf()), page)
}
