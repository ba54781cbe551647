/**
 * npm run simulate -- [--seconds 60] [--seed N] [--trace]: plays histories until the time is over or one breaks a rule.
 * With --trace, the one history of the seed is told. Ends with 1 if a rule did not hold, with 2 if something that must
 * happen now and then never did.
 */
import { parseArgs } from 'node:util'
import { playBatch, seedsFrom, told } from './batch.ts'
import { playHistory } from './history.ts'
import { sometimesNames } from './sometimes.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
  },
})
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const first = Number(values.seed ?? Date.now() % 4_294_967_296)

if (values.trace) {
  const history = await playHistory(first)
  say(await told(history))
  process.exit(history.broken === undefined ? 0 : 1)
}

say(`base seed ${first}`)
const endsAt = performance.now() + Number(values.seconds) * 1_000
const { histories, aMinute, seen, unseen, failed } = await playBatch(seedsFrom(first), () => performance.now() > endsAt)
if (failed !== undefined) say(await told(failed))
for (const name of sometimesNames) say(`${String(seen.get(name) ?? 0).padStart(8)}  ${name}`)
say(`${histories} histories, ${aMinute} a minute`)
if (failed === undefined && unseen.length > 0) say(`Never seen: ${unseen.join('; ')}`)
process.exit(failed !== undefined ? 1 : unseen.length > 0 ? 2 : 0)
