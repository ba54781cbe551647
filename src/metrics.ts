/** What is counted, in one place. Labels never hold a key, a recipient or anything that callers choose. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** A child of a metric for each combination of labels, found without making an object of them each time. */
function childOf<Child>(make: (...values: string[]) => Child): (...values: string[]) => Child {
  const children = new Map<string, Child>()
  return (...values) => {
    const name = values.join(' ')
    let child = children.get(name)
    if (child === undefined) children.set(name, (child = make(...values)))
    return child
  }
}

export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const metrics = {
    registry,
    claims: new Counter({
      name: 'sendonce_claims_total',
      help: 'Requests that reached the claim: `claimed` a new key, or `repeat` of one that was there.',
      labelNames: ['result'],
      registers,
    }),
    duplicates: new Counter({
      name: 'sendonce_possible_duplicates_total',
      help: 'Messages that say the same to the same recipient as one a short while before, under another key, by what became of them: `sent` (and marked), `held`, `refused`. Much of it is a caller that makes a new key at each try.',
      labelNames: ['became'],
      registers,
    }),
    held: new Gauge({ name: 'sendonce_held', help: 'Messages that wait for an approval.', registers }),
    attempts: new Counter({
      name: 'sendonce_attempts_total',
      help: 'Calls to providers by what they told us.',
      labelNames: ['provider', 'outcome'],
      registers,
    }),
    lookups: new Counter({
      name: 'sendonce_lookups_total',
      help: 'Questions to providers about unknown outcomes, by what they told us.',
      labelNames: ['provider', 'result'],
      registers,
    }),
    receipts: new Counter({
      name: 'sendonce_receipts_total',
      help: 'Events that providers told by webhook: `applied`, `repeated`, of an `unknown` message, `foreign`, `put_off`, the `reply` of a person, or refused as `forged`, `stale`, `unreadable`.',
      labelNames: ['provider', 'result'],
      registers,
    }),
    attemptSeconds: new Histogram({
      name: 'sendonce_attempt_seconds',
      help: 'Duration of calls to providers.',
      labelNames: ['provider'],
      buckets: seconds,
      registers,
    }),
    transitions: new Counter({
      name: 'sendonce_transitions_total',
      help: 'Changes of messages after their claim. `to="unknown"` is what wants attention.',
      labelNames: ['from', 'to'],
      registers,
    }),
    settled: new Counter({
      name: 'sendonce_settled_total',
      help: 'Messages that were unknown and are not any more: by whom, and what they became.',
      labelNames: ['by', 'to'],
      registers,
    }),
    unknown: new Gauge({
      name: 'sendonce_unknown',
      help: 'Messages whose outcome is unknown now, in all of the data base, by who settles them: `gateway` (a step is due) or `person`.',
      labelNames: ['waits_for'],
      registers,
    }),
    unknownOldest: new Gauge({
      name: 'sendonce_unknown_oldest_seconds',
      help: 'How long ago the oldest that waits for a person was claimed; 0 if there is none.',
      registers,
    }),
    alarms: new Counter({
      name: 'sendonce_alarms_total',
      help: 'Events that a person should look at.',
      labelNames: ['alarm'],
      registers,
    }),
    requests: new Histogram({
      name: 'sendonce_http_request_seconds',
      help: 'HTTP requests by route and status.',
      labelNames: ['method', 'route', 'status'],
      buckets: seconds,
      registers,
    }),
    inFlight: new Gauge({ name: 'sendonce_calls_in_flight', help: 'Calls to providers that run now.', registers }),
    waiting: new Gauge({ name: 'sendonce_requests_waiting', help: 'Requests that wait for an outcome.', registers }),
    dueWork: new Gauge({ name: 'sendonce_due_work', help: 'Messages that wait for a worker.', registers }),
    storeUp: new Gauge({
      name: 'sendonce_store_up',
      help: '1 if the data base answered the last time it was asked.',
      registers,
    }),
    providerStopped: new Gauge({
      name: 'sendonce_provider_stopped',
      help: '1 while a provider refuses our credentials and its messages wait.',
      labelNames: ['provider'],
      registers,
    }),
  }
  const { claims, attempts, attemptSeconds, transitions, requests } = metrics
  return {
    ...metrics,
    /** Of each send. */
    claimed: childOf((result) => claims.labels(result)),
    attempted: childOf((provider, outcome) => attempts.labels(provider, outcome)),
    attemptTook: childOf((provider) => attemptSeconds.labels(provider)),
    changed: childOf((from, to) => transitions.labels(from, to)),
    answered: childOf((method, route, status) => requests.labels(method, route, status)),
  }
}

export type Metrics = ReturnType<typeof createMetrics>
