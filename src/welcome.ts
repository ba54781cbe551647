/** What a newcomer needs to see after `npm start`. */
import type { Gateway } from './gateway.ts'

export function welcome({ url, sandboxUrl, madeKey }: Gateway): string {
  const key = madeKey ?? '$SENDONCE_BOOTSTRAP_KEY'
  return `
  Sendonce is ready.

    gateway   ${url}
    docs      ${url}/docs
    console   ${url}/console  (for whoever approves and settles)
    API key   ${madeKey ?? '(the one you brought)'}
    sandbox   ${sandboxUrl}/ledger  (what really went out)

  Send a message; send it again, and see that one went out:

    curl -i ${url}/v1/messages -H 'Authorization: Bearer ${key}' -H 'Idempotency-Key: order-42-shipped' -H 'Content-Type: application/json' -d '{"channel":"sms","to":"+447700900123","content":{"text":"Your parcel is on its way"}}'

    curl ${sandboxUrl}/ledger

`
}
