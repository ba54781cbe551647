/** The same rules for both stores: PostgreSQL's, and the one that the simulation plays. */
import { afterAll, beforeAll, describe } from 'vitest'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { createStore, type Store } from '../../src/store/store.ts'
import { simulatedStores } from '../simulation/conforming.ts'
import { useDatabase } from '../support/database.ts'
import { conversationConformance } from './conformance-conversations.ts'
import { guardConformance } from './conformance-guard.ts'
import { talkConformance } from './conformance-of-talk.ts'
import { storeConformance } from './conformance.ts'

describe('PostgreSQL', () => {
  const database = useDatabase()
  const opened: Database[] = []
  let stores: readonly [Store, Store]
  beforeAll(() => {
    const another = (): Store => {
      const made = openDatabase(database.url, () => {})
      opened.push(made)
      return createStore(made)
    }
    stores = [another(), another()]
  })
  afterAll(async () => {
    for (const one of opened) await one.close()
  })
  storeConformance(() => stores)
  conversationConformance(() => stores)
  guardConformance(() => stores)
  talkConformance(() => stores)
})

describe('the simulated data base', () => {
  const stores = simulatedStores()
  storeConformance(() => stores)
  conversationConformance(() => stores)
  guardConformance(() => stores)
  talkConformance(() => stores)
})
