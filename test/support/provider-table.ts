/** What each adapter declares, as the README shows it; an adapter whose settings change that has a line for each. */
import { Value } from 'typebox/value'
import { recoveryOf, type Capabilities } from '../../src/core/capabilities.ts'
import type { AdapterFacts } from '../../src/providers/provider.ts'
import { adapters } from '../../src/providers/registry.ts'
import { sandboxAdapters } from '../../src/providers/sandbox.ts'

interface Line {
  readonly name: string
  readonly only: string
  readonly capabilities: Capabilities
}

function linesOf(name: string, { capabilities, settings }: AdapterFacts<never>, only: string): Line[] {
  if (typeof capabilities !== 'function') return [{ name: `\`${name}\``, only, capabilities }]
  // As if all that can be set were set, and no switch turned.
  const set = Object.entries(settings.properties).map(([setting]) => [setting, ''])
  const given = { ...Object.fromEntries(set), ...(Value.Default(settings, {}) as object) } as never
  const usual = capabilities(given)
  const switches = Object.entries(settings.properties).filter(
    ([, { type }]: [string, { type?: string }]) => type === 'boolean',
  )
  const turned = switches.flatMap(([setting]) => {
    const changed = capabilities({ ...(given as object), [setting]: true } as never)
    return JSON.stringify(changed) === JSON.stringify(usual)
      ? []
      : [{ name: `\`${name}\` with \`${setting}: true\``, only, capabilities: changed }]
  })
  return [{ name: `\`${name}\``, only, capabilities: usual }, ...turned]
}

const lines = [
  ...Object.entries(adapters).flatMap(([name, adapter]) => linesOf(name, adapter, '')),
  ...sandboxAdapters.flatMap((adapter) => linesOf(adapter.adapter, adapter as AdapterFacts<never>, ' (only `test`)')),
]

const hoursOf = (ms: number): string => (ms < 3_600_000 ? `${ms / 60_000} min` : `${ms / 3_600_000} h`)

function whatFollows(capabilities: Capabilities): string {
  const { deduplication, lookup } = capabilities
  switch (recoveryOf(capabilities)) {
    case 'keyed':
      return `keyed: the same call with the same key, for ${hoursOf((deduplication?.lifetimeMs ?? 0) - (deduplication?.marginMs ?? 0))}`
    case 'lookup':
      return `it is asked; if it proves twice that it has nothing, one more call, within ${hoursOf((lookup?.retentionMs ?? 0) - (lookup?.marginMs ?? 0))}`
    case 'lookup-weak':
      return 'it is asked; not to be found proves nothing: `unknown`'
    case 'blind':
      return 'blind: nothing, `unknown`'
  }
}

export const providerRows: string[][] = lines.map(({ name, only, capabilities }) => [
  `${name}${only}`,
  capabilities.channels.length === 5 ? 'all' : capabilities.channels.join(', '),
  whatFollows(capabilities),
  capabilities.deduplication?.keyField ?? '',
  capabilities.acceptance === 'status' ? 'the status line' : 'the documented body',
])
