/** Settings about where providers reach the gateway, and what the sandbox signs with (config.ts, C1, C2). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ConfigError, loadConfig } from '../src/config.ts'
import type { Provider } from '../src/providers/provider.ts'

function configFile(file: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'sendonce-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'sendonce.yaml')
  writeFileSync(path, JSON.stringify(file))
  return path
}

function mistakesIn(env: Record<string, string>): string {
  try {
    loadConfig(env, [])
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : 'another error'
  }
}

test.each([
  ['https://hooks.example.com', ''],
  ['http://127.0.0.1:3000/below/', ''],
  ['hooks.example.com', 'PUBLIC_URL: must be an http or https URL without login and query'],
  ['ftp://hooks.example.com', 'PUBLIC_URL: must be an http or https URL without login and query'],
  ['https://user@hooks.example.com', 'PUBLIC_URL: must be an http or https URL without login and query'],
  ['https://hooks.example.com/?a=b', 'PUBLIC_URL: must be an http or https URL without login and query'],
  ['', 'PUBLIC_URL: is set but empty'],
])('PUBLIC_URL=%s: %s', (url, mistake) => {
  expect(mistakesIn({ PUBLIC_URL: url })).toBe(mistake)
})

test('SANDBOX_WEBHOOK_SECRET is a secret of Standard Webhooks', () => {
  const secret = `whsec_${Buffer.alloc(32).toString('base64')}`
  expect(loadConfig({ SANDBOX_WEBHOOK_SECRET: secret }, []).sandboxWebhookSecret).toBe(secret)
  expect(mistakesIn({ SANDBOX_WEBHOOK_SECRET: 'secret' })).toMatch(/^SANDBOX_WEBHOOK_SECRET: must be whsec_/)
})

test('PUBLIC_URL is the address of every provider that asks for callbacks and names none of its own', async () => {
  const twilio = { adapter: 'twilio', accountSid: `AC${'0'.repeat(32)}`, authToken: 't', from: '+15005550006' }
  const line = { adapter: 'line', channelAccessToken: 't' }
  const providers = { one: twilio, two: { ...twilio, publicUrl: 'https://two.example' }, line }
  const env = { SENDONCE_CONFIG: configFile({ providers }), SENDONCE_DATABASE: 'embedded' }
  const made = (more: Record<string, string>): Provider[] =>
    [...loadConfig({ ...env, ...more }, []).providers].map(([name, { create }]) => create(name))
  const evidence = (more: Record<string, string>): string[] =>
    made(more).map(({ capabilities }) => capabilities.lateEvidence)
  expect(evidence({})).toEqual(['none', 'callback_url', 'none'])
  expect(evidence({ PUBLIC_URL: 'https://all.example' })).toEqual(['callback_url', 'callback_url', 'none'])
  await Promise.all(made({}).map(async (provider) => provider.close()))
})

test.each(['api', 'sandbox-own', 'Twilio', ''])(
  'a provider is not named %j: its event ids would be taken for others’',
  (name) => {
    const line = { adapter: 'line', channelAccessToken: 't' }
    const env = { SENDONCE_CONFIG: configFile({ providers: { [name]: line } }), SENDONCE_DATABASE: 'embedded' }
    expect(mistakesIn(env)).toContain(`providers.${name}: a name has small letters`)
  },
)

test.each([
  ['127.0.0.1', ''],
  ['10.0.0.0/8,::1,fd00::/8', ''],
  ['10.0.0.0/8, ::1', 'TRUSTED_PROXIES: must be addresses'],
  ['proxy.example', 'TRUSTED_PROXIES: must be addresses'],
  ['10.0.0.0/99', 'TRUSTED_PROXIES: must be addresses'],
  ['true', 'TRUSTED_PROXIES: must be addresses'],
])('TRUSTED_PROXIES=%s: %s', (value, mistake) => {
  expect(mistakesIn({ TRUSTED_PROXIES: value }).slice(0, mistake === '' ? undefined : mistake.length)).toBe(mistake)
})
