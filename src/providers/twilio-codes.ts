/**
 * What Twilio's error codes mean for a message: its table alone; how a code is read from an answer is twilio.ts's.
 *
 * C1. What refuses a message for good, or for now, is documented as given instead of creating it.
 */
import type { CodeRule } from './provider.ts'

/**
 * Titles as in https://www.twilio.com/docs/api/errors. The dictionary names no HTTP status where the code itself does
 * not (20404): 400 is what Twilio's guides and test credentials show for a parameter that it refuses.
 */
export const codes: Readonly<Record<string, CodeRule>> = {
  // About us. 20404 too: nothing in our path but the account can be missing.
  10001: { means: 'credentials', statuses: [401, 403], wording: 'Account is not active' },
  20003: { means: 'credentials', statuses: [401, 403], wording: 'Permission Denied' },
  20005: { means: 'credentials', statuses: [401, 403], wording: 'Account not active' },
  20006: { means: 'credentials', statuses: [401, 403], wording: 'Access Denied' },
  20403: { means: 'credentials', statuses: [403], wording: '403 Forbidden' },
  20404: { means: 'credentials', statuses: [404], wording: 'Not Found' },
  // Where we are: no message would go out until PUBLIC_URL is one that Twilio takes.
  21609: { means: 'credentials', statuses: [400], wording: "Invalid 'StatusCallback'" },
  70051: { means: 'credentials', statuses: [401, 403], wording: 'Authorization Failed' },
  // Not now. 21611 is given instead of creating the message.
  20429: { means: 'refused_for_now', statuses: [429], wording: 'Too many requests' },
  21611: {
    means: 'refused_for_now',
    statuses: [400, 429],
    wording: "This 'From' number has exceeded the maximum number of queued messages",
  },
  63017: { means: 'refused_for_now', statuses: [429], wording: 'Rate limit exceeded' },
  63018: { means: 'refused_for_now', statuses: [429], wording: 'Rate limit exceeded for Channel' },
  63038: { means: 'refused_for_now', statuses: [429], wording: 'Account exceeded the daily messages limit' },
  // Open: 20503 says "try again", but not that the request was not processed.
  20500: { means: 'unknown', statuses: [500], wording: 'Internal Server Error' },
  20503: { means: 'unknown', statuses: [503], wording: 'Service unavailable' },
  // About this message.
  21211: { means: 'rejected', statuses: [400], wording: "Invalid 'To' Phone Number" },
  21212: { means: 'rejected', statuses: [400], wording: "Invalid 'From' Number" },
  21265: { means: 'rejected', statuses: [400], wording: "'To' number cannot be a Short Code" },
  21266: { means: 'rejected', statuses: [400], wording: "'To' and 'From' numbers cannot be the same" },
  21408: {
    means: 'rejected',
    statuses: [400],
    wording: 'Message blocked: permissions disabled for the destination region',
  },
  21601: {
    means: 'rejected',
    statuses: [400],
    wording: 'Phone number is not a valid SMS-capable inbound phone number',
  },
  21602: { means: 'rejected', statuses: [400], wording: 'Message body is required' },
  21603: {
    means: 'rejected',
    statuses: [400],
    wording: "A 'From' or 'MessagingServiceSid' parameter is required to send a message",
  },
  21604: { means: 'rejected', statuses: [400], wording: "'To' phone number is required to send a Message" },
  21606: {
    means: 'rejected',
    statuses: [400],
    wording:
      "The 'From' phone number provided is not a valid message-capable Twilio phone number for this destination/account",
  },
  21608: {
    means: 'rejected',
    statuses: [400],
    wording: "The 'to' phone number provided is not yet verified for this account.",
  },
  21610: { means: 'rejected', statuses: [400], wording: 'Attempt to send to unsubscribed recipient' },
  21612: {
    means: 'rejected',
    statuses: [400],
    wording: "Message cannot be sent with the current combination of 'To' and/or 'From' parameters",
  },
  21614: { means: 'rejected', statuses: [400], wording: "'To' number is not a valid mobile number" },
  21617: {
    means: 'rejected',
    statuses: [400],
    wording: 'The concatenated message body exceeds the 1600 character limit',
  },
  21619: { means: 'rejected', statuses: [400], wording: 'A Message Body, Media URL or Content SID is required' },
  21635: { means: 'rejected', statuses: [400], wording: "'To' number cannot be a landline" },
  21659: {
    means: 'rejected',
    statuses: [400],
    wording: "'From' is not a Twilio phone number or Short Code country mismatch",
  },
  21660: { means: 'rejected', statuses: [400], wording: "Mismatch between the 'From' number and the account" },
  21661: { means: 'rejected', statuses: [400], wording: "'From' number is not SMS-capable" },
  21701: { means: 'rejected', statuses: [400, 404], wording: 'The Messaging Service does not exist' },
  21705: { means: 'rejected', statuses: [400], wording: 'The Messaging Service is invalid' },
  21910: {
    means: 'rejected',
    statuses: [400],
    wording: "Invalid 'From' and 'To' pair. 'From' and 'To' should be of the same channel",
  },
  // About this message on WhatsApp. Most of these are told after the 201, by a status callback: there they are the code
  // of the delivery that failed.
  63001: {
    means: 'rejected',
    statuses: [400],
    wording:
      'Channel could not authenticate the request. Please see Channel specific error message for more information',
  },
  63002: { means: 'rejected', statuses: [400], wording: 'Channel could not find the From address' },
  63003: { means: 'rejected', statuses: [400], wording: 'Channel could not find To address' },
  63006: {
    means: 'rejected',
    statuses: [400],
    wording:
      'Could not format given content for the channel. Please see Channel specific error message for more information',
  },
  63007: {
    means: 'rejected',
    statuses: [400],
    wording: "Twilio could not find a Channel with the specified 'From' address",
  },
  63008: {
    means: 'rejected',
    statuses: [400],
    wording: 'Request failed: channel module misconfigured. Check Channel config in Twilio',
  },
  63013: { means: 'rejected', statuses: [400], wording: 'Channel policy violation' },
  63014: { means: 'rejected', statuses: [400], wording: 'Channel message blocked by user action' },
  63016: {
    means: 'rejected',
    statuses: [400],
    wording: 'Outside messaging window. For WhatsApp, use a Message Template instead',
  },
  63021: { means: 'rejected', statuses: [400], wording: 'Channel invalid content error' },
  63031: { means: 'rejected', statuses: [400], wording: "Channels message cannot have same 'From' and 'To'" },
}
