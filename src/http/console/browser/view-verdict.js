/** The verdict of a person on an attempt whose outcome is unknown: its evidence, and one form for each such attempt. */
/** @import { Act, Choice, Detail, Message, Problem, VerdictAsked } from './types.ts' */
/** @import { Child } from './dom.js' */
import { giveVerdict } from './acts.js'
import { h } from './dom.js'
import { change, state } from './state.js'
import { evidence, sentence } from './timeline.js'
import { keyName } from './view-frame.js'
import { ago, counted, moment, passed, visible } from './words.js'

/** @param {Message} message */
export function planOf({ plan, openAttempts }) {
  const open = openAttempts.length > 1 ? ` ${openAttempts.length} attempts are open; each wants its verdict.` : ''
  if (plan === null)
    return h(
      'p',
      { class: 'notice warn' },
      h('strong', {}, 'The gateway has no further step of its own. '),
      `It waits for evidence, or for a person.${open}`,
    )
  return h(
    'p',
    { class: 'notice' },
    h(
      'strong',
      {},
      plan.step === 'look' ? 'The gateway asks the provider ' : 'The gateway repeats the call under the same key ',
    ),
    ago(plan.at),
    '. It gives up ',
    ago(plan.givesUpAt),
    `; ${counted(plan.steps, 'step')} so far. You can settle it before that.${open}`,
  )
}

/** @param {Message} message @param {Detail | null} detail @returns {Child} */
export const verdictsOf = (message, detail) =>
  message.openAttempts.map((attempt) =>
    h('section', { key: `verdict ${attempt}`, class: 'act' }, form(message, attempt, detail)),
  )

/** @param {Message} message @param {string} attempt @param {Detail | null} detail @returns {Child} */
function form(message, attempt, detail) {
  const act = state.verdicts.get(attempt)
  const draft = state.drafts.get(attempt) ?? {}
  const events = (detail?.events ?? []).filter((entry) => entry.attempt === attempt)
  const started = events.find(({ type }) => type === 'attempt_started')
  const number = started?.data['number']
  const isOver = passed(message.notAfter)
  /** @param {Choice} choice @param {string} text @param {boolean} [disabled] */
  const radio = (choice, text, disabled = false) =>
    h(
      'label',
      {},
      h('input', {
        type: 'radio',
        name: `outcome ${attempt}`,
        value: choice,
        required: true,
        disabled,
        checked: draft.choice === choice,
      }),
      text,
    )
  return [
    h(
      'h3',
      {},
      typeof number === 'number' ? `Attempt ${number}` : 'The attempt',
      started !== undefined && [`, through ${visible(started.data['provider'])}, `, ago(started.at)],
    ),
    h(
      'ul',
      { class: 'evidence' },
      events
        .filter((entry) => entry !== started)
        .map((entry) =>
          h(
            'li',
            { key: entry.id },
            `${sentence(entry)} `,
            h('span', { class: 'quiet', dir: 'auto' }, evidence(entry)),
          ),
        ),
    ),
    h(
      'form',
      {
        onsubmit: (event) => submit(event, message, attempt),
        onchange: (event) => note(event, attempt),
        oninput: (event) => note(event, attempt),
      },
      h(
        'fieldset',
        { class: 'choices' },
        h('legend', {}, 'What became of it?'),
        radio('sent', 'It was sent'),
        radio('not_sent', 'It was not sent'),
        radio('again', 'It was not sent: send it again, once', isOver),
      ),
      isOver && h('p', { class: 'quiet' }, 'Its time is over, so nothing is sent again.'),
      h('label', { for: `evidence ${attempt}` }, 'What you saw, and where'),
      h(
        'textarea',
        { id: `evidence ${attempt}`, name: 'evidence', rows: 3, required: true, maxlength: 2000 },
        draft.evidence ?? '',
      ),
      draft.choice === 'sent' && [
        h('label', { key: 'id label', for: `id ${attempt}` }, "The provider's id of it, if you have it"),
        h('input', {
          key: 'id',
          id: `id ${attempt}`,
          name: 'providerMessageId',
          maxlength: 255,
          autocomplete: 'off',
          spellcheck: 'false',
          value: draft.providerMessageId ?? '',
        }),
      ],
      h('div', { key: 'said', role: 'status', tabindex: -1, 'data-outcome': true }, said(act)),
      h(
        'button',
        { key: 'submit', class: 'main', disabled: act?.phase === 'running' },
        act?.phase === 'running' ? 'Recording…' : act?.phase === 'lost' ? 'Repeat the verdict' : 'Record the verdict',
      ),
    ),
  ]
}

/** @param {Act<VerdictAsked> | undefined} act @returns {Child} */
function said(act) {
  if (act?.phase === 'lost')
    return h(
      'p',
      { class: 'notice warn' },
      h('strong', {}, `${act.why ?? ''} `),
      'Whether your verdict was recorded is not known here. To give the same again is safe: it counts once.',
    )
  if (act?.phase === 'refused' && act.problem !== undefined) return refusal(act.problem)
  return null
}

/** @param {Problem} problem */
function refusal({ type, status, title, detail, decision }) {
  if (type === 'already-decided' && decision !== undefined && 'outcome' in decision) {
    const { outcome, by, apiKey, at, evidence: seen } = decision
    return h(
      'p',
      { class: 'notice warn' },
      h('strong', {}, `It was settled already: ${outcome === 'sent' ? 'sent' : 'not sent'}`),
      ', by ',
      h('bdi', {}, apiKey === null ? by.replaceAll('_', ' ') : keyName(apiKey)),
      ', ',
      moment(at),
      seen !== null && `, who saw: “${visible(seen)}”`,
      '. That stands.',
    )
  }
  return h(
    'p',
    { class: 'notice bad' },
    h('strong', {}, 'Nothing was recorded. '),
    status === 403 ? `This key may not settle it. ${detail}` : `${title}. ${detail}`,
  )
}

/** @param {Event} event @param {string} attempt */
function note({ target }, attempt) {
  if (!(target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement)) return
  const draft = state.drafts.get(attempt) ?? {}
  const { name, value } = target
  if (name === 'evidence' || name === 'providerMessageId') state.drafts.set(attempt, { ...draft, [name]: value })
  else if (value === 'sent' || value === 'not_sent' || value === 'again')
    state.drafts.set(attempt, { ...draft, choice: value })
  change()
}

/** @param {Event} event @param {Message} message @param {string} attempt */
function submit(event, message, attempt) {
  event.preventDefault()
  const { choice, evidence: seen = '', providerMessageId = '' } = state.drafts.get(attempt) ?? {}
  if (choice === undefined || seen.trim() === '') return
  void giveVerdict(message.id, {
    attempt,
    outcome: choice === 'sent' ? 'sent' : 'not_sent',
    evidence: seen.trim(),
    ...(choice === 'sent' && providerMessageId.trim() !== '' ? { providerMessageId: providerMessageId.trim() } : {}),
    ...(choice === 'again' ? { resend: true } : {}),
  })
}
