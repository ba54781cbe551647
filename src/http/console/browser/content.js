/** What a message says, by channel, as its recipient will get it: always as text, whatever it holds. */
/** @import { Message } from './types.ts' */
/** @import { Child } from './dom.js' */
import { h } from './dom.js'
import { counted, visible } from './words.js'

/** One line of it, for lists. @param {Message} message */
export function gist({ content }) {
  const { text, subject, title, body, type } = content
  const said = [subject ?? title, text ?? body].filter((part) => typeof part === 'string' && part !== '')
  return visible(said.length > 0 ? said.join(' — ') : (type ?? '')).slice(0, 300)
}

/** @param {Message} message @returns {Child} */
export function contentOf(message) {
  const { content } = message
  switch (message.channel) {
    case 'email':
      return emailOf(message)
    case 'push':
      return [
        fact('Title', content['title']),
        said(content['body']),
        'data' in content && json('Data', content['data']),
      ]
    case 'webhook':
      return [fact('Type', content['type']), json('Data', content['data'])]
    case 'sms':
    case 'chat':
      return [said(content['text']), 'threadId' in content && fact('Thread', content['threadId'])]
    default:
      return json('Content', content)
  }
}

/** @param {Message} message @returns {Child} */
function emailOf({ cc = [], bcc = [], replyTo = null, content }) {
  const { subject, text, html, headers = {}, attachments = [] } = content
  const files = /** @type {readonly { filename: string, contentType: string, content: string }[]} */ (attachments)
  return [
    fact('Subject', subject),
    cc.length > 0 && fact('Copy to', cc.join(', ')),
    bcc.length > 0 && fact('Blind copy to', bcc.join(', ')),
    replyTo !== null && fact('Replies to', replyTo),
    Object.entries(/** @type {Record<string, unknown>} */ (headers)).map(([name, value]) =>
      fact(`Header ${visible(name)}`, value),
    ),
    text !== undefined && said(text),
    html !== undefined && block('HTML, as it is written', html),
    files.length > 0 && [
      h('h4', {}, counted(files.length, 'attachment')),
      h(
        'ul',
        { class: 'files' },
        files.map(({ filename, contentType, content: base64 }) =>
          h(
            'li',
            {},
            h('bdi', {}, visible(filename)),
            h('span', { class: 'quiet' }, ` ${visible(contentType)}, ${size(base64)}`),
          ),
        ),
      ),
    ],
  ]
}

/** @param {unknown} text */
const said = (text) => h('p', { class: 'said', dir: 'auto' }, visible(text ?? ''))

/** @param {string} name @param {unknown} value */
const fact = (name, value) =>
  h('p', { class: 'fact' }, h('span', { class: 'fact-name' }, `${name} `), h('bdi', {}, visible(value ?? '')))

/** @param {string} name @param {unknown} value */
const json = (name, value) => block(name, JSON.stringify(value, null, 2))

/** It may be wider than its box, and is scrolled by keys as well. @param {string} name @param {unknown} text */
const block = (name, text) => [
  h('h4', {}, name),
  h('pre', { class: 'block', tabindex: 0, role: 'region', 'aria-label': name }, visible(text ?? '')),
]

/** @param {string} base64 */
function size(base64) {
  const bytes = Math.floor((base64.replace(/=+$/, '').length * 3) / 4)
  return bytes < 1024 ? counted(bytes, 'byte') : `${Math.round(bytes / 1024)} KiB`
}
