/** Tells those who do not see the page what has come in, without taking their focus. */
/** @import { Message } from './types.ts' */
import { channelName, counted, visible } from './words.js'

/** @param {readonly Message[]} arrived */
export function announceHeld(arrived) {
  const [first] = arrived
  if (first === undefined) return
  const text =
    arrived.length === 1
      ? `A new held message: ${channelName(first.channel)} to ${visible(first.to)}.`
      : `${counted(arrived.length, 'new held message')}.`
  say(text)
}

/** What was announced names recipients, too. */
export const forgetAnnounced = () => say('')

/** @param {string} text */
function say(text) {
  const place = document.querySelector('#announced')
  if (place !== null) place.textContent = text
}
