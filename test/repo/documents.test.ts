/** What documents say of the code is printed by the code: `npm run docs` writes it, this compares it. */
import { expect, test } from 'vitest'
import { settings, type Setting } from '../../src/config.ts'
import { apiKinds, scopesOfKind } from '../../src/core/api-key.ts'
import { policyDefaults, type KeyPolicy } from '../../src/core/key-policy.ts'
import { problems, problemTypes, type ProblemKind } from '../../src/core/problems.ts'
import { openApiText } from '../../src/openapi-text.ts'
import { magics } from '../../src/sandbox/magic.ts'
import { compareFile, compareSection, table, type Section } from '../support/documents.ts'
import { providerRows } from '../support/provider-table.ts'
import { transitionTable } from '../support/transitions.ts'

const settingsTable = table(
  ['variable', 'default', 'meaning'],
  (settings as readonly Setting[]).map((setting) => [
    `\`${setting.name}\``,
    setting.default === null ? '' : `\`${setting.default}\``,
    setting.meaning,
  ]),
)
const problemsTable = table(
  ['problem', 'status', 'repeat?', 'what to do'],
  problemTypes.map((type) => {
    const { status, retryable, retryableWhile, advice }: ProblemKind = problems[type]
    const otherwise = retryableWhile === undefined ? '' : `; yes while ${retryableWhile}`
    return [`\`${type}\``, String(status), `${retryable ? 'yes' : 'no'}${otherwise}`, advice]
  }),
)
const sandboxTable = table(
  ['sms', 'name', 'the sandbox'],
  magics.map(({ number, name, meaning }) => [`\`${number}\``, name, meaning]),
)

const providersTable = table(
  ['adapter', 'channels', 'after a lost answer', 'key', 'what proves acceptance'],
  providerRows,
)

const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
const kindsTable = table(
  ['', ...apiKinds.map(code)],
  [
    ['scopes it may hold', ...apiKinds.map((kind) => scopesOfKind[kind].map(code).join(', '))],
    ...(Object.keys(policyDefaults.service) as (keyof KeyPolicy)[]).map((member) => [
      code(member),
      ...apiKinds.map((kind) => code(policyDefaults[kind][member])),
    ]),
  ],
)

const sections: readonly Section[] = [
  { file: 'README.md', name: 'kinds', text: kindsTable },
  { file: 'README.md', name: 'providers', text: providersTable },
  { file: 'README.md', name: 'settings', text: settingsTable },
  { file: 'README.md', name: 'sandbox', text: sandboxTable },
  { file: 'README.md', name: 'problems', text: problemsTable },
  { file: 'ARCHITECTURE.md', name: 'transitions', text: transitionTable() },
]

test.each(sections)('$file tells the $name as the code has them (else: npm run docs)', (section) => {
  const { written, right } = compareSection(section)
  expect(written).toBe(right)
})

test('openapi/openapi.json is what the code makes (else: npm run docs)', async () => {
  const { written, right } = compareFile('openapi/openapi.json', await openApiText())
  expect(written).toBe(right)
})
