/** The pass-through: Fastify and undici, no store. What any gateway costs before it remembers anything. */
import { bareApp, callProvider, serve } from './common.ts'

const app = bareApp()

app.post<{ Body: string }>('/v1/messages', async (request, reply) => {
  const answer = await callProvider(request.body)
  return reply.code(answer.code).type('application/json').send(answer.body)
})

await serve(app)
