import { defineConfig } from 'prisma/config'

// For people who use Prisma's own command line beside `npm run db:migrate`, which needs no download.
export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
})
