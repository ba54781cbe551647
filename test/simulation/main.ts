/** npm run simulate -- --seconds 60 --seed N [--trace]: plays histories, and says how many and what they showed. */
import { playHistory } from './history.ts'
const at = process.argv.indexOf('--seed')
const s = process.argv.indexOf('--seconds')
const base = at < 0 ? 1 : Number(process.argv[at + 1])
if (process.argv.includes('--trace')) {
  const h = await playHistory(base, true)
  console.log(h.lines.join('\n')); console.log(h.broken); process.exit(0)
}
const end = Date.now() + Number(process.argv[s + 1]) * 1000
const seen = new Map<string, number>()
const rules = new Map<string, number[]>()
let n = 0
const t0 = Date.now()
for (let seed = base; Date.now() < end; seed++) {
  const h = await playHistory(seed)
  n++
  for (const [k, v] of h.seen) seen.set(k, (seen.get(k) ?? 0) + v)
  if (h.broken !== undefined) { const r = h.broken.split(':')[0]!; rules.set(r, [...(rules.get(r) ?? []), seed]) ; if (rules.get(r)!.length < 3) console.log(seed, h.broken) }
}
console.log(n, 'histories', (n / (Date.now() - t0) * 60000) | 0, 'a minute')
console.log(seen); console.log([...rules].map(([r, l]) => `${r}: ${l.length}`))
process.exit(0)
