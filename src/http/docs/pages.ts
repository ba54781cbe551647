/** /docs, the browsable API; /docs/which-key, which key callers should use; /problems/{type}, what each problem means. Nothing from another host. */
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { problems, problemTypes, type ProblemKind, type ProblemType } from '../../core/problems.ts'
import { Refusal } from '../../operations/refusal.ts'
import { page } from './page.ts'
import { whichKey } from './which-key.ts'

export async function docsPages(app: FastifyInstance): Promise<void> {
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // Its own styles are inline; scripts are not, and nothing comes from another host.
    staticCSP:
      "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
    theme: { title: 'Sendonce API' },
    uiConfig: { docExpansion: 'list', displayRequestDuration: true, persistAuthorization: false, validatorUrl: null },
  })
  const hidden = { schema: { hide: true } }
  app.get('/docs/which-key', hidden, async (_, reply) => html(reply, page('Which key?', whichKey)))
  app.get('/problems', hidden, async (_, reply) => html(reply, page('Problems', problemList())))
  app.get<{ Params: { type: string } }>('/problems/:type', hidden, async (request, reply) => {
    const { type } = request.params
    if (!isProblemType(type)) throw new Refusal('not-found', 'There is no problem of this name.')
    return html(reply, page(problems[type].title, problemPage(type)))
  })
}

const html = (reply: FastifyReply, body: string): FastifyReply =>
  reply
    .type('text/html; charset=utf-8')
    .header(
      'content-security-policy',
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    )
    .send(body)

const isProblemType = (type: string): type is ProblemType => Object.hasOwn(problems, type)

function problemPage(type: ProblemType): string {
  const { status, retryable, retryableWhile, advice }: ProblemKind = problems[type]
  const unless = retryableWhile === undefined ? '' : `, except while ${retryableWhile}: <code>retryable</code> says so`
  return `<p><code>${type}</code>, HTTP ${status}. Repeating the very same request with the very same key is ${retryable ? '' : 'not '}of use${unless}.</p>
<p>${escape(advice)}</p><p><a href="/problems">All problems</a></p>`
}

const problemList = (): string =>
  `<table><thead><tr><th>Problem</th><th>Status</th><th>What to do</th></tr></thead><tbody>${problemTypes
    .map(
      (type) =>
        `<tr><td><a href="/problems/${type}"><code>${type}</code></a></td><td>${problems[type].status}</td><td>${escape(problems[type].advice)}</td></tr>`,
    )
    .join('')}</tbody></table>`

const escape = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/`([^`]*)`/g, '<code>$1</code>')
