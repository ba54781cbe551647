/** Bugs about conversations, approvals and the guard against saying the same twice. */
import { bug, change, type PlantedBug } from './planted-bug.ts'

const claim = 'src/store/claim-message.ts'
const newMessage = 'src/operations/new-message.ts'
const send = 'src/operations/send-message.ts'
const approval = 'src/operations/decide-approval.ts'

export const plantedTalkBugs: readonly PlantedBug[] = [
  bug(
    'the version is not looked at again before a message leaves',
    change(newMessage, 'rechecks: asked.request.conversation !== undefined &&', 'rechecks: leaseMs === -1 &&'),
  ),
  bug(
    'a claim does not move the version',
    change(claim, "state.status === 'held' || state.status === 'scheduled' ? 0 : 1", '0'),
  ),
  bug(
    'the version is read before the claim, outside the lock',
    change(newMessage, 'ifVersion: plan.ifVersion,', 'ifVersion: null,'),
    change(
      send,
      '  const slot = isLater ? null : await slotFor(deps, asked, names, provider)\n',
      `  const there = await deps.store.findConversation(asked.scope, asked.request.conversation ?? '')
  if (plan.ifVersion !== null && there.version !== plan.ifVersion)
    if ((await deps.store.findKey(asked.scope, names)) === undefined) throw await movedOn(deps, asked, 'no')
  const slot = isLater ? null : await slotFor(deps, asked, names, provider)\n`,
    ),
  ),
  bug(
    'claims with If-Match go in groups: two of one version pass',
    change(claim, 'if (!isBound(asked)) return', 'if (!isBound({ ...asked, ifVersion: null })) return'),
  ),
  bug(
    'a decision is written over another',
    change(
      'test/simulation/write-statements.ts',
      "if (before === undefined || before.version !== change['before']) return []",
      "if (before === undefined || (before.version !== change['before'] && change['decision'] === null)) return []",
    ),
  ),
  bug(
    'an approval is not bound to what was shown',
    change(approval, 'found.fingerprint !== fingerprint', "fingerprint === ''"),
  ),
  bug('a sender approves what it sent', change(approval, 'found.sentBy === apiKey', "apiKey === ''")),
  bug(
    'what lapses is sent',
    change(
      'src/core/approval.ts',
      "transition({ status: 'canceled', reason: 'lapsed', last: null }, {}, record('lapsed', at))",
      "transition({ status: 'queued', last: null, dueAt: at }, {}, { type: 'dispatch_at', at })",
    ),
  ),
  bug(
    'what the guard remembers is erased while a longer window reaches it',
    change('src/store/duplicates.ts', '[limit, guardWindow.maxS]', '[limit, guardWindow.minS]'),
  ),
  bug(
    'the guard looks at a stale reading',
    change(newMessage, "refuses: heldFor === null && mode !== 'flag',", 'refuses: false,'),
    change(
      send,
      'import { canonicalText,',
      "import { contentHash } from '../core/conversation.ts'\nimport { canonicalText,",
    ),
    change(
      send,
      '  const waitsFor = await heldFor(deps, asked)\n',
      `  const { mode, windowSeconds } = asked.sender.policy.duplicateGuard
  const hash = contentHash(asked.request)
  const isSecond = (await deps.store.findFirstOfContent(asked.scope, asked.request.to, hash, windowSeconds)) !== undefined
  const waits = await heldFor(deps, asked)
  if (mode === 'refuse' && isSecond && waits === null) throw new Refusal('overloaded', null, { sent: 'maybe' }, 1)
  const waitsFor = waits ?? (mode === 'hold' && isSecond ? 'duplicate' : null)\n`,
    ),
  ),
]
