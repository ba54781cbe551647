/** Rules of the house that need no reviewer: this test reads the source. Each rule says why. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const sources = filesBelow('src').filter((path) => !path.startsWith('src/store/generated/'))

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|js)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
}

/** Programs of their own, under the rules of size and leftovers alone. */
const besides = [...filesBelow('test'), ...filesBelow('bench'), ...filesBelow('torture')]

const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')
const codeOf = (path: string): string =>
  textOf(path)
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/(^|\s)\/\/.*$/gm, '')

interface Import {
  readonly from: string
  /** A path in src, or the name of a package. */
  readonly to: string
  readonly typeOnly: boolean
}

const imports: Import[] = sources.flatMap((from) =>
  [
    ...textOf(from).matchAll(
      /^(?:import|export) (type )?[^'"]*?from '([^']+)'|^import '([^']+)'|import\('([^']+)'\)/gm,
    ),
  ].map((found) => {
    const target = found[2] ?? found[3] ?? found[4] ?? ''
    const to = target.startsWith('.') ? relative(root, resolve(root, dirname(from), target)) : target
    return { from, to, typeOnly: found[1] !== undefined }
  }),
)

test('the reading of imports finds them', () => {
  expect(imports.length).toBeGreaterThan(200)
})

interface Rule {
  readonly of: RegExp
  /** What these files may import; node's own modules count by name. */
  readonly may: RegExp
  readonly because: string
}

const rules: readonly Rule[] = [
  {
    of: /^src\/core\//,
    may: /^(src\/core\/|canonicalize$|node:crypto$)/,
    because: 'core is pure: no clock, no randomness, no I/O, so that it can be tested and simulated as it is',
  },
  {
    of: /^src\/operations\//,
    may: /^src\/(core|operations)\/|^src\/store\/database-errors\.ts$/,
    because: 'operations use the store and the providers through the types that they are given',
  },
  {
    of: /^src\/workers\//,
    may: /^src\/(core|operations|workers)\/|^src\/store\/database-errors\.ts$/,
    because: 'workers decide when, operations decide what',
  },
  {
    of: /^src\/store\//,
    may: /^(src\/(core|store)\/|src\/(data-folder|new-uuid)\.ts$|pg$|@prisma\/|node:)/,
    because: 'the store knows messages and PostgreSQL, and nothing of HTTP, providers or workers',
  },
  {
    of: /^src\/providers\//,
    may: /^(src\/(core|providers)\/|src\/sandbox\/magic\.ts$|undici$|typebox$|ajv|ipaddr\.js$|nodemailer\/lib\/|node:(crypto|dns|net|stream)$)/,
    because: 'an adapter knows its provider and the core, and nothing of the store or of HTTP towards callers',
  },
  {
    of: /^src\/http\//,
    may: /^(src\/(core|operations|http)\/|src\/store\/database-errors\.ts$|fastify$|@fastify\/|typebox$|ajv|node:)/,
    because: 'routes call operations, and read through the store that they are given',
  },
  {
    of: /^src\/mcp\//,
    may: /^(src\/(core|mcp)\/|src\/http\/(request-schemas|schema-parts|schemas|validation)\.ts$|src\/operations\/refusal\.ts$|@modelcontextprotocol\/sdk\/|typebox$|undici$|node:(crypto|net)$)/,
    because:
      'an agent is a caller like any other: its tools take the routes, so that no second set of rules comes to be',
  },
]

test('what a browser is served imports nothing but what is served with it', () => {
  const served = /^src\/http\/console\/browser\/[^/]+\.js$/
  expect(imports.filter(({ from, to }) => served.test(from) && !served.test(to))).toEqual([])
})

test.each(rules)('$of imports only what it may: $because', ({ of, may }) => {
  const wrong = imports.filter(({ from, to, typeOnly }) => of.test(from) && !may.test(to) && !typeOnly)
  expect(wrong).toEqual([])
})

test('only store/ imports Prisma and pg: one place talks to the data base', () => {
  const wrong = imports.filter(({ from, to }) => /^(pg|@prisma\/)/.test(to) && !from.startsWith('src/store/'))
  expect(wrong).toEqual([])
})

test('only providers/ imports undici, for one place talks to providers; and mcp/http-client.ts, which talks to a gateway', () => {
  const may = /^src\/(providers\/|mcp\/http-client\.ts$)/
  expect(imports.filter(({ from, to }) => to === 'undici' && !may.test(from))).toEqual([])
})

test('only registry.ts imports an adapter: nothing else knows which providers there are', () => {
  const adapters =
    /^src\/providers\/(?!(provider|registry|http-outcome|http-provider|judge-answer|public-address|refused-urls|call-settings|place|read-body|email-message|incoming|smtp-message|smtp-session|govuk-notify-webhook|postmark-webhook|twilio-codes|twilio-webhook|standard-webhooks)\.ts)/
  const wrong = imports.filter(({ from, to }) => adapters.test(to) && from !== 'src/providers/registry.ts')
  expect(wrong).toEqual([])
})

/** Words that only some files may use, and why. */
const words: readonly { word: RegExp; only: RegExp; because: string }[] = [
  {
    word: /process\.env/,
    only: /^src\/(config|sandbox\/main|store\/embedded-postgres)\.ts$/,
    because: 'settings are read once, in config.ts (a child process is handed its environment)',
  },
  {
    word: /Date\.now|new Date\(\)|Math\.random|randomUUID|performance\.now/,
    only: /^src\/(?!core|operations|workers)/,
    because: 'core, operations and workers are given time and chance, so that a test can give others',
  },
  {
    word: /setTimeout|setInterval/,
    only: /^src\/((clock|process|providers\/(http-outcome|smtp-session)|store\/embedded-postgres|sandbox\/(server|receipts))\.ts|http\/console\/browser\/(api|live)\.js)$/,
    because: 'a timer elsewhere would be a second loop, or a wait that a test cannot step',
  },
  {
    word: /\bfetch\(|RetryAgent|RetryHandler|interceptors/,
    only: /^src\/http\/console\/browser\/api\.js$/,
    because:
      'a retry inside the HTTP client sends twice, and the built-in fetch is an undici that is not pinned (a browser has nothing else)',
  },
  {
    word: /provider(\.name|\.adapter)? === '/,
    only: /^$/,
    because: 'what a provider can do is data in its adapter',
  },
  {
    word: /console\./,
    only: /^$/,
    because: 'the log holds no recipient, text or key; the console would not know that',
  },
]

test.each(words)('$word stands only where it may: $because', ({ word, only }) => {
  expect(sources.filter((path) => word.test(codeOf(path)) && !only.test(path))).toEqual([])
})

test('files in core, operations, workers, providers, store, mcp and the console open with what they own', () => {
  const silent = sources.filter(
    (path) =>
      /^src\/(core|operations|workers|providers|store|mcp|http\/console)\//.test(path) &&
      !textOf(path).startsWith('/**'),
  )
  expect(silent).toEqual([])
})

test('no file outgrows a reader: 360 lines', () => {
  const long = [...sources, ...besides].filter((path) => textOf(path).split('\n').length > 360)
  expect(long).toEqual([])
})

test('dependencies are pinned exactly', () => {
  const { dependencies, devDependencies } = JSON.parse(textOf('package.json')) as Record<string, Record<string, string>>
  const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(([, version]) => !/^\d/.test(version))
  expect(loose).toEqual([])
})

test('nothing is left to do later, and no test is left out', () => {
  const leftover = /\b(TODO|FIXME|XXX)\b|\b(it|test|describe)\.(only|skip|todo)\(/
  const found = [...sources, ...besides].filter(
    (path) => path !== 'test/repo/house-rules.test.ts' && leftover.test(textOf(path)),
  )
  expect(found).toEqual([])
})
