/** The page "Which key?": what callers should use as Idempotency-Key, by where they stand. */
export const whichKey = `
<p>An idempotency key is <strong>your name of the event</strong> that the message is about. The same event has the same
key, however often your code runs; another event has another. The gateway writes the key down before it calls a
provider, and answers every repeat with what came of the first.</p>

<h2>The rule for callers</h2>
<p><strong>Any 5xx, any time-out, from anyone: repeat the same request with the same key.</strong> Make the key before the
first try, outside the loop that retries. A key made inside the loop is a new event each time round, and a message each
time round.</p>

<table>
<thead><tr><th>Where you stand</th><th>Use</th><th>Not</th></tr></thead>
<tbody>
<tr><td>A webhook handler</td><td>the sender's event id and what you do with it: <code>evt_1Nk…:receipt</code></td><td>a UUID made in the handler: webhooks are delivered more than once</td></tr>
<tr><td>A queue consumer</td><td>the id of the job's subject: <code>order-42:shipped</code></td><td>the delivery id, or the number of the try</td></tr>
<tr><td>A form, a button</td><td>a UUID made when the form is shown, sent along with it</td><td>one made when the button is pressed: it is pressed twice</td></tr>
<tr><td>A nightly job</td><td>the job and the day it is for: <code>digest:2026-11-30:user-7</code></td><td>the time at which it runs</td></tr>
<tr><td>A row of a table</td><td>its primary key and the change: <code>invoice-881:reminder-2</code></td><td>a hash of the text: two honest “ok” are two messages</td></tr>
<tr><td>An agent</td><td>the conversation and what the message is for, made by the tool and not by the model, as the tools of <code>/mcp</code> do</td><td>a key that the model invents: asked again, it invents another</td></tr>
</tbody>
</table>

<h2>No key at hand?</h2>
<p>Give <code>conversation</code> and <code>reference</code> instead; the key is derived from account, environment and both, and
comes back in the <code>Idempotency-Key</code> header. One reference is one message, with the header or without.</p>

<h2>A time is no key</h2>
<p><code>1764500000</code>, <code>2026-11-30T12:00:00Z</code>: a repeat a second later has another one, so a new key that is
only a time is refused.</p>

<h2>Did it go out?</h2>
<pre>GET  /v1/idempotency-keys/order-42-shipped        → sent: yes | no | maybe
POST /v1/idempotency-keys/order-42-shipped/void   → sent: no, for ever</pre>
<p>Only <code>sent: no</code> makes a new key safe. <code>404</code> says nothing: a request on its way may yet arrive.
Voiding the key is the one proof that nothing will be sent.</p>
`
