/** The sign-in form. What is typed goes to session.js and stays nowhere else. */
import { h } from './dom.js'
import { signIn } from './session.js'
import { state } from './state.js'

export function signInView() {
  const { busy, said } = state.signIn
  return h(
    'main',
    { key: 'sign-in', id: 'main', class: 'sign-in', tabindex: -1 },
    h('h1', { id: 'title', tabindex: -1 }, 'Sendonce console'),
    h('p', {}, 'Decide what is held, and settle what is unknown. Sign in with the API key of a person.'),
    h(
      'form',
      { onsubmit: submit },
      h('label', { for: 'api-key' }, 'API key'),
      h('input', {
        id: 'api-key',
        type: 'password',
        required: true,
        autocomplete: 'off',
        autocapitalize: 'off',
        spellcheck: 'false',
        'aria-describedby': 'api-key-hint sign-in-said',
        'aria-invalid': said !== null && 'true',
      }),
      h(
        'p',
        { id: 'api-key-hint', class: 'quiet' },
        'It stays in this page only, until you sign out, reload or leave.',
      ),
      h('p', { id: 'sign-in-said', class: said === null ? 'unseen' : 'notice bad', role: 'alert' }, said),
      h('button', { class: 'main', disabled: busy }, busy ? 'Signing in…' : 'Sign in'),
    ),
  )
}

/** @param {Event} event */
function submit(event) {
  event.preventDefault()
  const field = document.querySelector('#api-key')
  if (field instanceof HTMLInputElement) void signIn(field.value)
}
