/**
 * What one source file asks of the world: the modules that it names, and whether it reads the environment.
 *
 * Read from the syntax tree (TypeScript 7 has no API; vite brings a parser), so text in comments and strings is never taken for code.
 * A module name that is computed at run time cannot be read here, and is not reported.
 */
import { type ESTree, parseSync, Visitor } from 'vite'

export interface Source {
  /** From the root of the repository, with forward slashes. */
  path: string
  text: string
}

interface SourceFacts {
  /** The specifiers of its imports, type-only and dynamic ones included. */
  imports: string[]
  readsEnvironment: boolean
}

const known = new WeakMap<Source, SourceFacts>()

/** Each source is parsed once, because several rules need its facts, and there are more than a thousand sources. */
export function factsOf(source: Source): SourceFacts {
  const facts = known.get(source) ?? readFacts(source)
  known.set(source, facts)
  return facts
}

function readFacts({ path, text }: Source): SourceFacts {
  const { program, errors } = parseSync(path, text)
  const [error] = errors
  if (error) throw new Error(`${path}: ${error.message}`)

  const imports: string[] = []
  // Names by which this file knows the process object.
  const processNames = new Set(['process'])
  let readsEnvironment = false

  const visitor = new Visitor({
    ImportDeclaration(node) {
      note(node.source.value)
      if (!isProcessModule(node.source.value)) return
      for (const specifier of node.specifiers) {
        if (specifier.type !== 'ImportSpecifier') processNames.add(specifier.local.name)
        else if (specifier.imported.type === 'Identifier' && specifier.imported.name === 'env') readsEnvironment = true
      }
    },
    ExportNamedDeclaration(node) {
      if (node.source) note(node.source.value)
    },
    ExportAllDeclaration(node) {
      note(node.source.value)
    },
    ImportExpression(node) {
      noteExpression(node.source)
    },
    TSImportType(node) {
      note(node.source.value)
    },
    TSExternalModuleReference(node) {
      note(node.expression.value)
    },
    CallExpression(node) {
      const [argument] = node.arguments
      if (argument && isRequire(node.callee)) noteExpression(argument)
    },
    MemberExpression(node) {
      if (propertyName(node) === 'env' && (isProcess(node.object) || node.object.type === 'MetaProperty')) readsEnvironment = true
    },
    VariableDeclarator(node) {
      if (!node.init || node.id.type !== 'ObjectPattern' || !isProcess(node.init)) return
      if (node.id.properties.some(property => property.type === 'RestElement' || keyName(property.key) === 'env')) readsEnvironment = true
    },
  })
  visitor.visit(program)
  return { imports, readsEnvironment }

  function note(specifier: string): void {
    imports.push(specifier)
  }

  function noteExpression(node: ESTree.Expression | ESTree.SpreadElement): void {
    const specifier = constantText(node)
    if (specifier !== null) note(specifier)
  }

  function isProcess(node: ESTree.Expression | ESTree.Super): boolean {
    if (node.type === 'Identifier') return processNames.has(node.name)
    return node.type === 'MemberExpression' && propertyName(node) === 'process'
  }
}

function isProcessModule(specifier: string): boolean {
  return specifier === 'node:process' || specifier === 'process'
}

/** `require('x')` and `require.resolve('x')`. */
function isRequire(callee: ESTree.Expression | ESTree.Super): boolean {
  const target = callee.type === 'MemberExpression' && propertyName(callee) === 'resolve' ? callee.object : callee
  return target.type === 'Identifier' && target.name === 'require'
}

function propertyName(node: ESTree.MemberExpression): string | null {
  if (node.computed) return constantText(node.property)
  return node.property.type === 'Identifier' ? node.property.name : null
}

function keyName(key: ESTree.PropertyKey): string | null {
  return key.type === 'Identifier' ? key.name : key.type === 'Literal' ? constantText(key) : null
}

function constantText(node: ESTree.Expression | ESTree.SpreadElement): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null
  if (node.type === 'TemplateLiteral' && node.expressions.length === 0) return node.quasis[0]?.value.cooked ?? null
  return null
}
