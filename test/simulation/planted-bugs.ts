/**
 * Bugs that a gateway of this kind could have, each a change of one text that stands once in the source: when the source
 * moves, the change fails loudly and is to be planted anew. test/simulation/mutants.ts shows that each is found.
 */
import { bug, change, type PlantedBug } from './planted-bug.ts'
import { plantedReceiptBugs } from './planted-receipt-bugs.ts'
import { plantedTalkBugs } from './planted-talk-bugs.ts'

const dispatch = 'src/operations/dispatch-message.ts'
const send = 'src/operations/send-message.ts'
const recovery = 'src/core/recovery.ts'
const machine = 'src/core/state-machine.ts'

export const plantedBugs: readonly PlantedBug[] = [
  bug(
    'no attempt record',
    change(
      dispatch,
      "const begun = await begin(deps, message, { type: 'begin', attempt, means: meansOf(provider), rendered }, ms)",
      "const begun: Message = { ...message, rendered, state: { status: 'sending', attempt } }\n    void begin",
    ),
  ),
  bug(
    'retry on time-out',
    change(
      'src/providers/judge-answer.ts',
      "        kind: 'unknown',\n        evidence: { phase: 'begun', code: result.code",
      "        kind: 'not_sent',\n        reason: 'not_begun',\n        retryAfterMs: null,\n        evidence: { phase: 'begun', code: result.code",
    ),
  ),
  bug(
    'fence dropped: whoever ends a call ends the message',
    change(
      machine,
      'return attempt.id === state.attempt.id\n        ? followOutcome(message, event, ended)',
      'return state.attempt.id !== null\n        ? followOutcome(message, event, ended)',
    ),
  ),
  bug(
    'compare-and-set dropped: the later write wins',
    change(
      'test/simulation/write-statements.ts',
      "if (before === undefined || before.version !== change['before']) return []",
      'if (before === undefined) return []',
    ),
  ),
  bug(
    'claim deleted on throw',
    change(
      dispatch,
      '  noteCredentials(deps, provider, outcome)\n',
      "  noteCredentials(deps, provider, outcome)\n  if (outcome.kind === 'unknown') await deps.store.insertName(message, 'delete the claim', message.id)\n",
    ),
    change(
      'test/simulation/write-statements.ts',
      '  const row = tables.keys.get(keyOf(account, environment, known))\n',
      "  if (name === 'delete the claim') {\n    for (const [id, key] of tables.keys) if (key.messageId === known) tables.keys.delete(id)\n    tables.messages.delete(known)\n    return []\n  }\n  const row = tables.keys.get(keyOf(account, environment, known))\n",
    ),
  ),
  bug(
    'verdict taken from the last attempt',
    change(
      'src/core/outcome.ts',
      'return earlier !== null && rank[earlier] > rank[outcome] ? earlier : outcome',
      'return earlier !== null && rank[earlier] > 9 ? earlier : outcome',
    ),
  ),
  bug(
    'absence trusted too early: before what was written has arrived',
    change(recovery, 'if (look.began < absenceCountsFrom(message, lookup) || look.ended', 'if (look.ended'),
  ),
  bug(
    'absence trusted at the first look',
    change(
      recovery,
      "return sinceLastMs !== null && sinceLastMs >= lookup.settlingMs ? 'proven' : 'once'",
      "return 'proven'",
    ),
    change(recovery, 'endSeen ? leaseUntil : after(startedAt', 'endSeen ? startedAt : after(startedAt'),
    change(
      recovery,
      'return after(new Date(Math.max(...ends.map(Number))), settlingMs)',
      'return after(new Date(Math.max(...ends.map(Number))), settlingMs / 3)',
    ),
  ),
  bug(
    'absence trusted of a weak look-up',
    change(
      'src/core/capabilities.ts',
      "match === 'exact' && strength === 'strong'",
      "match === 'exact' && strength !== null",
    ),
  ),
  bug(
    'write gate off',
    change(
      dispatch,
      'deps.clock.elapsedMs(lease.since) <= lease.ms / 2 && deps.clock.latest() < until',
      'lease.ms > 0 && until > new Date(0)',
    ),
  ),
  bug(
    'a machine that slept takes its own time for true',
    change(dispatch, 'deps.clock.latest() < until', 'deps.clock.now() < until'),
  ),
  bug(
    'fingerprint constant',
    change(
      'src/core/fingerprint.ts',
      "hash('sha256', canonical, 'buffer')",
      "hash('sha256', canonical.slice(0, 0), 'buffer')",
    ),
  ),
  bug(
    'answer before commit',
    change(
      'src/operations/apply-event.ts',
      '    const saved = await deps.store.saveMessage(change)',
      '    deps.waiters.publish(next)\n    const saved = await deps.store.saveMessage(change)',
    ),
  ),
  bug(
    'group answered as a whole',
    change(
      'src/store/grouped.ts',
      'group.forEach(({ resolve }, i) => resolve(results[i] as Result))',
      'group.forEach(({ resolve }) => resolve(results[0] as Result))',
    ),
  ),
  bug(
    'group in doubt answered as refused',
    change(
      'src/store/grouped.ts',
      'else for (const { reject } of group) reject(error)',
      'else for (const { reject } of group) reject(error instanceof StoreUnavailable ? new StoreOverloaded() : error)',
    ),
  ),
  bug(
    'lapsed lease taken for not sent',
    change(
      machine,
      "return transition({ status: 'unknown', attempt: ended, plan }, {}, lapsed)",
      "return transition({ status: 'queued', last: { ...ended, outcome: 'not_sent' }, dueAt: at }, {}, { type: 'dispatch_at', at }, record('lease_lapsed', at, ended.id))",
    ),
  ),
  bug(
    "key's window forgotten",
    change(
      recovery,
      'earlier(after(openSince(message), lifetimeMs - marginMs), message.notAfter)',
      'earlier(after(openSince(message), (lifetimeMs - marginMs) * 100), message.notAfter)',
    ),
    change(
      recovery,
      'return earlier(after(first.startedAt, deduplication.lifetimeMs - deduplication.marginMs), notAfter)',
      'return notAfter',
    ),
  ),
  bug(
    'identity of the provider forgotten',
    change(
      recovery,
      "one.identity !== '' && one.identity === other.identity",
      "one.identity !== '' && other.identity !== ''",
    ),
    change('src/operations/reconcile-message.ts', 'means.identity !== attempt.identity', "attempt.identity === ''"),
  ),
  bug(
    'claim in doubt taken for absent: told that nothing was claimed',
    change(send, 'throw wasInDoubt && error instanceof StoreTrouble', 'throw wasInDoubt && error instanceof Refusal'),
  ),
  bug(
    'claim in doubt taken for ours',
    change(
      send,
      "found?.kind === 'message' && found.message.id === claimed.id ?",
      "found?.kind === 'message' && found.message.version === 1 ?",
    ),
  ),
  bug(
    'a person cancels what is unknown',
    change(
      machine,
      "    case 'canceled':\n      return ignored('it is canceled already')\n    case 'sending':\n    case 'unknown':\n",
      "    case 'unknown':\n      return transition({ status: 'canceled', last: { ...state.attempt, outcome: 'not_sent' } }, {}, record('canceled', at, null, { apiKey }))\n    case 'canceled':\n      return ignored('it is canceled already')\n    case 'sending':\n",
    ),
  ),
  bug(
    'a slot is not given back',
    change(
      'src/operations/reconcile-message.ts',
      '      } finally {\n        release()\n      }',
      '      } finally {\n        if (provider.concurrency > 99) release()\n      }',
    ),
  ),
  bug(
    'lapsed synchronous claims are not looked for',
    change(
      'src/workers/rescuer.ts',
      'const since = deep ? await deepSince(deps) : new Date(lastPass.getTime() - lookBackMs)',
      'const since = deep ? (await deepSince(deps), now) : now',
    ),
  ),
  ...plantedTalkBugs,
  ...plantedReceiptBugs,
]
