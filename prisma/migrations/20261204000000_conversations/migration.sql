-- Conversations with versions, messages that wait for a person, and the guard against asking twice.

ALTER TABLE messages
  -- The API key that sent it. Null: claimed before this was noted.
  ADD COLUMN api_key_id            text,
  -- Why it waits, or waited, for a person.
  ADD COLUMN held_for              text CHECK (held_for IN ('approval', 'duplicate')),
  -- JSON: what a person decided.
  ADD COLUMN decision              text,
  ADD COLUMN canceled_reason       text CHECK (canceled_reason IN ('declined', 'lapsed', 'conversation_changed')),
  -- The version of its conversation that its claim found, and that must still be the one when it leaves.
  ADD COLUMN conversation_version  integer CHECK (conversation_version >= 0),
  -- The first message of the same content, by whatever key, within the window of the guard.
  ADD COLUMN possible_duplicate_of uuid,
  -- What makes it look like another one, where its API key has a guard.
  ADD COLUMN content_hash          bytea CHECK (octet_length(content_hash) = 16),
  -- JSON: the providers that it may go to, where its API key names them.
  ADD COLUMN allowed_providers     text,
  DROP CONSTRAINT status_is_known,
  ADD CONSTRAINT status_is_known CHECK (
    status IN ('held', 'scheduled', 'queued', 'sending', 'unknown', 'sent', 'failed', 'canceled')),
  ADD CONSTRAINT held_waits_for_a_person CHECK (
    status <> 'held' OR (held_for IS NOT NULL AND decision IS NULL AND attempts = 0)),
  ADD CONSTRAINT only_what_was_held_is_decided CHECK (decision IS NULL OR held_for IS NOT NULL),
  ADD CONSTRAINT only_what_was_held_is_declined CHECK (
    canceled_reason IS NULL
    OR (status = 'canceled' AND (canceled_reason = 'conversation_changed' OR held_for IS NOT NULL)));

-- `held`: due when it lapses.
ALTER TABLE due_work DROP CONSTRAINT due_work_task_check;
ALTER TABLE due_work ADD CONSTRAINT due_work_task_check
  CHECK (task IN ('dispatch', 'held', 'lease', 'reconcile', 'unknown'));

-- What an account groups messages by. A claim that goes out, a held or scheduled message that leaves, and a message that
-- comes in make a new version each.
CREATE TABLE conversations (
  account_id   text COLLATE "C" NOT NULL,
  environment  text NOT NULL CHECK (environment IN ('live', 'test')),
  conversation text COLLATE "C" NOT NULL,
  version      integer NOT NULL,
  -- Of the last change: by how much it moved the version, and which version it was to find, null: whichever.
  moved        integer NOT NULL CHECK (moved >= 0),
  based_on     integer,
  updated_at   timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, environment, conversation),
  -- The precondition, judged under the lock of the row: a change that is based on another version than it finds fails.
  CONSTRAINT conversation_has_not_moved CHECK (based_on IS NULL OR version = based_on + moved)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- What the other side said: once per event id.
CREATE TABLE inbound_messages (
  id           uuid PRIMARY KEY,
  account_id   text COLLATE "C" NOT NULL,
  environment  text NOT NULL CHECK (environment IN ('live', 'test')),
  conversation text COLLATE "C" NOT NULL,
  -- `api`, or the provider whose webhook brought it.
  source       text COLLATE "C" NOT NULL,
  -- The sender's name of the event, or made of the fields that make it that event.
  event_id     text COLLATE "C" NOT NULL CHECK (octet_length(event_id) BETWEEN 1 AND 1020),
  -- Null once retention has erased what was said, while the event id stays, so that a late repeat is none.
  sender       text,
  body         text,
  occurred_at  timestamptz(3),
  received_at  timestamptz(3) NOT NULL DEFAULT now(),
  CONSTRAINT inbound_once UNIQUE (account_id, environment, conversation, source, event_id),
  CONSTRAINT said_or_erased CHECK ((sender IS NULL) = (body IS NULL))
);

-- What a provider tells is told once, into whichever conversation its redelivery would belong by then.
CREATE UNIQUE INDEX inbound_once_by_provider ON inbound_messages (environment, source, event_id) WHERE source <> 'api';
CREATE INDEX inbound_by_conversation ON inbound_messages (account_id, environment, conversation, id);
CREATE INDEX inbound_by_age ON inbound_messages (received_at) WHERE body IS NOT NULL;

-- The guard: the same content to the same recipient in the same conversation, by whatever key. A row lives for the longest
-- window that an API key may have.
CREATE TABLE duplicate_guards (
  account_id   text COLLATE "C" NOT NULL,
  environment  text NOT NULL CHECK (environment IN ('live', 'test')),
  content_hash bytea NOT NULL CHECK (octet_length(content_hash) = 16),
  -- The first of them, until it failed or was canceled: then the first that has not, within the window of who looks.
  message_id   uuid NOT NULL,
  first_at     timestamptz(3) NOT NULL DEFAULT now(),
  seen_at      timestamptz(3) NOT NULL DEFAULT now(),
  -- Of the last claim that came by: for how long back it looks, and whether it refuses to be a second one.
  window_s     integer NOT NULL CHECK (window_s > 0),
  refuses      boolean NOT NULL,
  is_second    boolean NOT NULL,
  PRIMARY KEY (account_id, environment, content_hash),
  CONSTRAINT duplicate_is_not_refused CHECK (NOT (refuses AND is_second))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- For retention alone, where a B-tree would be written at each send. Not of `seen_at`, so that its update stays HOT.
CREATE INDEX duplicate_guards_by_age ON duplicate_guards USING brin (first_at) WITH (pages_per_range = 32);

-- A hash index walks all entries of one value at each insert: a recipient of many messages made every further one dearer.
-- A B-tree does not. It is over a hash, for a device token may be longer than a B-tree takes.
DROP INDEX messages_by_recipient;
CREATE INDEX messages_by_recipient ON messages (hashtextextended(recipient, 0), id);
