/** The few numbers above the charts of a page: four in a row, or two on a narrow screen. */
export type Fact = readonly [name: string, value: string]

export function FactTiles({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className="mt-4 grid grid-cols-2 gap-3 md:grid-cols-4">
      {facts.map(([name, value]) => (
        <div key={name} className="rounded-xl border border-line bg-panel px-4 py-3">
          <dt className="text-[13px] text-soft">{name}</dt>
          <dd className="text-xl font-semibold tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
