/** After the last fault: everything is up, every key is asked for until it is definite, and what is planned gets its time. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Callers } from './callers.ts'
import type { Chance } from './chance.ts'
import { isDefinite } from './history.ts'
import type { Asked } from './keys.ts'
import type { World } from './world.ts'

const atATime = 16

/** @returns keys that nothing definite was told of in the time given */
export async function quieten(
  world: World,
  callers: Callers,
  asked: readonly Asked[],
  chance: Chance,
  untilMs: number,
): Promise<readonly Asked[]> {
  await Promise.all(world.gateways.map(async (gateway) => (gateway.isUp() ? undefined : gateway.start())))
  let open = asked
  while (open.length > 0) {
    open = await askForAll(callers, open, chance)
    if (Date.now() > untilMs || (await nothingIsPlanned(world))) break
    await pause(1_000)
  }
  // Once more, now that nothing changes any more: what is final must be what was told.
  return askForAll(callers, open, chance)
}

async function askForAll(callers: Callers, asked: readonly Asked[], chance: Chance): Promise<readonly Asked[]> {
  const left = [...asked]
  const open: Asked[] = []
  const askOn = async (): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) {
      const heard = await callers.send(one, callers.anyGateway(chance), { wait: 1, giveUpMs: null }, one.body)
      if (!isDefinite(heard)) open.push(one)
    }
  }
  await Promise.all(Array.from({ length: atATime }, askOn))
  return open
}

/** Nothing will happen by itself but looking where looking proves nothing. */
async function nothingIsPlanned({ postgres }: World): Promise<boolean> {
  const [row] = await postgres.query<{ waiting: number }>(
    `SELECT count(*)::int AS waiting FROM messages
     WHERE status IN ('scheduled', 'queued', 'sending')
       OR (status = 'unknown' AND plan IS NOT NULL AND provider <> 'sandbox-lookup-eventual' AND not_after > now())`,
  )
  return row?.waiting === 0
}
