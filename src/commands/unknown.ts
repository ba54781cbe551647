/**
 * `sendonce unknown list | show | resolve`: for the person who settles what a provider never confirmed. It decides by the
 * same operation as POST /v1/messages/{id}/resolve, whatever the account; who did it is the user of the system.
 */
import { parseArgs } from 'node:util'
import { idFromUuid, uuidFromId } from '../core/ids.ts'
import { environments } from '../core/message-content.ts'
import { attemptOf, openAttemptIds, statusReason, type Message, type Plan } from '../core/message.ts'
import { messageView } from '../core/message-view.ts'
import { timelineView } from '../core/timeline.ts'
import type { Deps } from '../deps.ts'
import { resolveMessage, type Verdict } from '../operations/resolve-message.ts'
import { plainly, whoAmI, type Write } from './terminal.ts'

export const unknownUsage = `sendonce unknown list [--account NAME] [--environment live|test] [--provider NAME] [--older-than SECONDS] [--limit N] [--json]
       sendonce unknown show MESSAGE [--json]
       sendonce unknown resolve MESSAGE --outcome sent|not_sent --evidence TEXT [--provider-message-id ID] [--resend] [--dry-run] [--json]`

const text = { type: 'string' } as const
const flag = { type: 'boolean', default: false } as const

/** @throws Error with one clear line */
export async function unknownCommand(deps: Deps, args: readonly string[], write: Write): Promise<void> {
  const [command, ...rest] = args
  if (command === 'list') return list(deps, rest, write)
  if (command === 'show') return show(deps, rest, write)
  if (command === 'resolve') return resolve(deps, rest, write)
  throw new Error(`usage: ${unknownUsage}`)
}

/** As the list shows it: where to look, and since when. No recipient and no text: a terminal is a log, too. */
function row(message: Message, now: Date) {
  // The last one that wants a verdict: of a replay that was not accepted nothing is left to say.
  const openId = openAttemptIds(message).at(-1)
  const attempt = message.open.find(({ id }) => id === openId) ?? attemptOf(message.state)
  return {
    message: idFromUuid('message', message.id),
    account: message.account,
    environment: message.environment,
    provider: message.provider,
    channel: message.request.channel,
    attempt: attempt === null ? '' : idFromUuid('attempt', attempt.id),
    startedAt: attempt?.startedAt.toISOString() ?? '',
    ageSeconds: Math.round((now.getTime() - message.createdAt.getTime()) / 1000),
    why: statusReason(message) ?? '',
    next: message.state.status === 'unknown' && message.state.plan !== null ? nextStep(message.state.plan) : 'a person',
  }
}

const nextStep = ({ step, at }: Plan): string => `${step} ${at.toISOString()}`

async function list(deps: Deps, args: string[], write: Write): Promise<void> {
  const options = { account: text, environment: text, provider: text, 'older-than': text, limit: text, json: flag }
  const { values } = parseArgs({ args, options, strict: true })
  if (values.environment !== undefined && !(environments as readonly string[]).includes(values.environment))
    throw new Error(`--environment: must be one of ${environments.join(', ')}`)
  const olderThanS = wholeNumber('--older-than', values['older-than'] ?? '0')
  const limit = wholeNumber('--limit', values.limit ?? '100')
  const now = deps.clock.now()
  const messages = await deps.store.findMessages(await deps.store.findWaitingIds('unknown', 10_000))
  const rows = messages
    .filter(({ state }) => state.status === 'unknown')
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((message) => row(message, now))
    .filter(
      (found) =>
        (values.account ?? found.account) === found.account &&
        (values.environment ?? found.environment) === found.environment &&
        (values.provider ?? found.provider) === found.provider &&
        found.ageSeconds >= olderThanS,
    )
    .slice(0, limit)
  if (values.json) return write(`${JSON.stringify(rows)}\n`)
  write(rows.length === 0 ? 'Nothing is unknown.\n' : table(rows))
}

function wholeNumber(name: string, value: string): number {
  if (!/^\d{1,9}$/.test(value)) throw new Error(`${name}: must be a whole number`)
  return Number(value)
}

function table(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const names = Object.keys(rows[0] ?? {})
  const lines = [names, ...rows.map((cells) => names.map((name) => String(cells[name])))]
  const widths = names.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines
    .map(
      (cells) =>
        `${cells
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

async function find(deps: Deps, id: string | undefined): Promise<Message> {
  const uuid = id === undefined ? undefined : uuidFromId('message', id)
  const [message] = uuid === undefined ? [] : await deps.store.findMessages([uuid])
  if (message === undefined) throw new Error(`there is no message ${id ?? '(none was named)'}`)
  return message
}

async function show(deps: Deps, args: string[], write: Write): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: { json: flag }, strict: true, allowPositionals: true })
  const message = await find(deps, positionals[0])
  const { data } = timelineView(message, await deps.store.findEvents(message.id))
  if (values.json) return write(`${JSON.stringify({ message: messageView(message), events: data })}\n`)
  const { id, status, provider, channel, conversation, reference, idempotencyKey } = messageView(message)
  write(
    `${id}  ${status}  ${provider}  ${channel}\nkey ${idempotencyKey}  conversation ${conversation ?? '-'}  reference ${reference ?? '-'}\n\n`,
  )
  for (const { at, type, attempt, data: evidence } of data)
    write(`${at}  ${type}  ${attempt ?? ''}  ${JSON.stringify(evidence)}\n`)
}

async function resolve(deps: Deps, args: string[], write: Write): Promise<void> {
  const options = {
    outcome: text,
    evidence: text,
    'provider-message-id': text,
    resend: flag,
    'dry-run': flag,
    json: flag,
  }
  const { values, positionals } = parseArgs({ args, options, strict: true, allowPositionals: true })
  const { outcome, evidence, resend } = values
  if (outcome !== 'sent' && outcome !== 'not_sent') throw new Error('--outcome: must be sent or not_sent')
  if (evidence === undefined || evidence === '') throw new Error('--evidence: say what you saw, and where')
  if (resend && outcome === 'sent') throw new Error('--resend: belongs to a message that was not sent')
  const message = await find(deps, positionals[0])
  const attempt = attemptOf(message.state)
  if (attempt === null) throw new Error(`the message is ${message.state.status}: no attempt of it could be unknown`)
  const verdictOn = (attemptId: string): Verdict => ({
    attempt: idFromUuid('attempt', attemptId),
    outcome,
    resend,
    evidence,
    providerMessageId: values['provider-message-id'] ?? null,
  })
  // One verdict settles them all: under one key of the provider's, what one call did is what all of them did.
  const open = openAttemptIds(message)
  const last = open.at(-1) ?? message.resolution?.attemptId ?? attempt.id // the one that was settled, if it was
  const attempts = outcome === 'sent' || open.length === 0 ? [last] : open
  if (values['dry-run']) {
    const verdicts = attempts.map(verdictOn)
    const would = { message: idFromUuid('message', message.id), status: message.state.status, verdicts }
    return write(
      values.json
        ? `${JSON.stringify(would)}\n`
        : `would settle ${would.message}, now ${would.status}, as ${outcome}${resend ? ', and have it sent again' : ''}\n`,
    )
  }
  let settled = message
  for (const id of attempts)
    settled = await resolveMessage(deps, message, idFromUuid('message', message.id), verdictOn(id), {
      apiKey: whoAmI(),
      isBootstrap: false,
    }).catch(plainly)
  write(
    values.json
      ? `${JSON.stringify(messageView(settled))}\n`
      : `${idFromUuid('message', settled.id)} is ${settled.state.status}\n`,
  )
}
