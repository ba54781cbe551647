/**
 * What must hold at the end of a world, whatever happened in it, and what must have happened in some world of each kind
 * for the matrix to have shown anything.
 */
import { recoveryOf } from '../../src/core/capabilities.ts'
import { moments } from './mortal.ts'
import type { Request, World } from './stage.ts'
import { faults, kinds, type Fault, type Kind } from './vendors.ts'
import { Refusal } from '../../src/operations/refusal.ts'

const means = (kind: Kind) => recoveryOf(kinds[kind])

/** `201`, `504 outcome-unknown`, … and what it says of the sending. */
function told(heard: Request['heard']): string {
  if (heard === null) return 'nothing'
  if (heard instanceof Refusal) return heard.type
  const { type, sent } = JSON.parse(heard.body) as { type?: string; sent?: string }
  return type === undefined ? String(heard.status) : `${heard.status} ${type.replace('/problems/', '')} ${sent}`
}

/** The table of api.md: what a repeat is answered with. */
const tableOf = (status: string, way: string): string | undefined =>
  ({
    sent: '201',
    scheduled: '202',
    queued: '202',
    sending: way === 'asynchronous' ? '202' : '409 in-progress maybe',
    unknown: '504 outcome-unknown maybe',
    failed: '422 message-rejected no',
  })[status]

const isFinal = (status: string | undefined): boolean => status === 'sent' || status === 'failed'

/** Nobody who lived on heard how a call of this world ended. */
export const wasSomethingLost = ({ vendor, gateways }: World): boolean =>
  gateways.some((gateway) => gateway.isDead()) ||
  vendor.requests.some(({ told: { kind }, heard }) => !heard || kind === 'unknown')

/** @returns the rules that did not hold, with the life that broke them */
export function brokenRules(world: World): string[] {
  const { kind, fault, way, vendor, row, requests, errors, first, second, gateways } = world
  const status = row?.status ?? 'not there'
  const { requests: calls, acceptances } = vendor
  const [once, again] = requests.slice(-2).map(({ heard }) => heard)
  const settledBefore = requests.filter(
    ({ heard }) => heard !== null && !(heard instanceof Refusal) && [201, 422].includes(heard.status),
  )
  const isBlind = means(kind) === 'blind'
  const { refuses: alwaysRefuses, acts }: Fault = faults[fault]
  const refuses = alwaysRefuses === true || acts.includes('refuses without reading the key')
  // A repeat that is refused speaks for itself alone (E3a): the first one may have been accepted.
  const knows = means(kind) === 'lookup' || (means(kind) === 'keyed' && !refuses)
  const rules: Readonly<Record<string, boolean>> = {
    'nothing is left in flight': !world.isRestless && ['sent', 'failed', 'unknown'].includes(status),
    'at most one send is accepted': acceptances.length <= 1,
    'a blind provider gets another call only after it was heard to accept none':
      !isBlind || calls.slice(0, -1).every(({ told: { kind: was }, heard }) => heard && was === 'not_sent'),
    'all calls are of one message': new Set(calls.map(({ messageId }) => messageId)).size <= 1,
    'under a key the same bytes are sent': means(kind) !== 'keyed' || new Set(calls.map(({ body }) => body)).size <= 1,
    'sent: only what was accepted': status !== 'sent' || acceptances.length === 1,
    'failed: only what was not accepted, and was refused': status !== 'failed' || (acceptances.length === 0 && refuses),
    'unknown: only where something was lost': status !== 'unknown' || wasSomethingLost(world),
    'unknown: never where the provider can tell': status !== 'unknown' || !knows,
    'what a weak look-up shows in the end is believed':
      means(kind) !== 'lookup-weak' || acceptances.length === 0 || status === 'sent',
    'the caller is answered by the table': told(again ?? null) === tableOf(status, way),
    'and again with the same bytes, as a replay':
      once !== null &&
      again !== null &&
      once !== undefined &&
      again !== undefined &&
      !(once instanceof Refusal) &&
      !(again instanceof Refusal) &&
      again.replayed &&
      once.body === again.body,
    'what was told for good stands': settledBefore.every(
      ({ heard }) =>
        heard !== null &&
        again !== null &&
        again !== undefined &&
        'body' in heard &&
        'body' in again &&
        heard.body === again.body,
    ),
    'a repeat is answered as what stands there': requests
      .slice(1)
      .every(
        ({ before, heard }, i) =>
          before === null ||
          heard === null ||
          heard instanceof Refusal ||
          told(heard) === tableOf(before.status, way) ||
          (!isFinal(before.status) && i < requests.length - 3),
      ),
    'what was planned happened': [first, second].every(
      (mishap, i) => mishap === null || gateways[i]?.steps[mishap.at - 1] === mishap.step,
    ),
    'no bug and no alarm is logged': errors.length === 0,
  }
  const happened = [first, second]
    .map((mishap) => (mishap === null ? '' : `${mishap.moment} ${mishap.step} (${mishap.at})`))
    .join(', then ')
  const lives = gateways.map(({ steps }) => steps.join(' ')).join(' | ')
  return Object.keys(rules)
    .filter((rule) => rules[rule] === false)
    .map(
      (rule) =>
        `${rule} (${kind} / ${fault} / ${way}: ${happened}: ${lives}; it ${vendor.did.join(', ')}; ${acceptances.length} accepted; ${status}; ${requests.map(({ heard }) => told(heard)).join(', ')}; ${errors.join(' ')})`,
    )
}

const has = (world: World, step: string): boolean => world.gateways.some(({ steps }) => steps.includes(step))
const count = ({ vendor }: World, did: string): number => vendor.did.filter((one) => one === did).length

/** Of each kind of provider: what must have been seen. A matrix without it has shown nothing. */
export const sometimes: Readonly<
  Record<ReturnType<typeof recoveryOf>, Readonly<Record<string, (world: World) => boolean>>>
> = {
  blind: {
    'ended unknown although it was accepted': ({ row, vendor }) =>
      row?.status === 'unknown' && vendor.acceptances.length === 1,
    'ended unknown, and was not accepted': ({ row, vendor }) =>
      row?.status === 'unknown' && vendor.acceptances.length === 0,
  },
  keyed: {
    'was replayed, and accepted before': ({ vendor, row }) =>
      vendor.requests.length > 1 && vendor.acceptances.length === 1 && row?.status === 'sent',
    'was replayed, and accepted then': ({ vendor, row }) =>
      row?.status === 'sent' &&
      vendor.requests[0]?.told.kind === 'unknown' &&
      vendor.did[0]?.startsWith('accepts not') === true,
    'was replayed twice': ({ vendor }) => vendor.requests.length > 2,
    'was refused a connection while another attempt was open': (world) =>
      count(world, 'is not reached') > 0 && world.vendor.did[0] !== 'is not reached',
    'was refused for good although it was accepted before': (world) =>
      count(world, 'refuses without reading the key') > 0 && world.row?.status === 'unknown',
    'met its own key in use': (world) => count(world, 'says that the key is in use') > 0,
  },
  lookup: {
    'was looked for and found': (world) => count(world, 'shows it') > 0 && world.row?.status === 'sent',
    'was looked for in vain, and found later': (world) =>
      count(world, 'shows nothing') > 0 && count(world, 'shows it') > 0,
    'was proven absent, sent again and accepted': (world) =>
      count(world, 'shows nothing') > 1 && world.row?.status === 'sent' && world.vendor.requests.length > 1,
    'was proven absent, sent again and refused': (world) =>
      count(world, 'shows nothing') > 1 && world.row?.status === 'failed',
    'had a look-up that failed': (world) => count(world, 'fails to look') > 0,
  },
  'lookup-weak': {
    'was looked for in vain, and found later': (world) =>
      count(world, 'shows nothing') > 0 && count(world, 'shows it') > 0,
    'was never shown, and ended unknown': (world) =>
      count(world, 'shows nothing') > 3 && world.row?.status === 'unknown',
    'had a look-up that failed': (world) => count(world, 'fails to look') > 0,
  },
}

/** Of all of them together. */
export const sometimesAnywhere: Readonly<Record<string, (world: World) => boolean>> = {
  ...Object.fromEntries(
    moments.map((moment) => [`it happened: ${moment}`, ({ first }: World) => first?.moment === moment]),
  ),
  ...Object.fromEntries(
    ['claimMessage', 'findKey', 'saveMessage', 'takeDue', 'findLapsed', 'provider', 'look'].map((step) => [
      `a gateway died after ${step}`,
      ({ first, second }: World) =>
        [first, second].some((mishap) => mishap?.moment === 'dies after' && mishap.step === step),
    ]),
  ),
  'a caller was told that it is in progress': ({ requests }) =>
    requests.some(({ heard }) => told(heard) === '409 in-progress maybe'),
  'a caller was told that the store is not available': ({ requests }) =>
    requests.some(({ heard }) => told(heard) === 'store-unavailable'),
  'a lease lapsed': (world) => has(world, 'findLapsed'),
}
