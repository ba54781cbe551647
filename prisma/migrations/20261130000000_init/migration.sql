-- Accounts, API keys, idempotency keys, messages, due work, events, sweeps.
-- Texts that are compared or made unique are COLLATE "C": byte order, the same under every locale and ICU version.

CREATE TABLE accounts (
  id         text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
  id          text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9-]{1,64}$'),
  account_id  text COLLATE "C" NOT NULL REFERENCES accounts (id),
  environment text NOT NULL CHECK (environment IN ('live', 'test')),
  secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
  scopes      text[] NOT NULL CHECK (scopes <@ ARRAY['send', 'read', 'approve', 'resolve', 'admin']),
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  revoked_at  timestamptz(3)
);

-- The claim is an insert here. No foreign keys from hot rows: the message is inserted by the same statement.
CREATE TABLE idempotency_keys (
  account_id          text COLLATE "C" NOT NULL,
  environment         text NOT NULL CHECK (environment IN ('live', 'test')),
  key                 text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
  message_id          uuid,
  fingerprint         bytea CHECK (octet_length(fingerprint) = 32),
  fingerprint_version smallint,
  first_seen_at       timestamptz(3) NOT NULL DEFAULT now(),
  voided_by           text,
  PRIMARY KEY (account_id, environment, key),
  -- A key has a message and its fingerprint, or it is a tombstone and says who made it one.
  CONSTRAINT key_is_whole CHECK (
    CASE WHEN message_id IS NULL
      THEN fingerprint IS NULL AND fingerprint_version IS NULL AND voided_by IS NOT NULL
      ELSE fingerprint IS NOT NULL AND fingerprint_version IS NOT NULL AND voided_by IS NULL
    END)
);

CREATE TABLE messages (
  id                  uuid PRIMARY KEY,
  account_id          text COLLATE "C" NOT NULL,
  environment         text NOT NULL CHECK (environment IN ('live', 'test')),
  idempotency_key     text COLLATE "C" NOT NULL,
  request             text NOT NULL,
  fingerprint_version smallint NOT NULL,
  metadata            text NOT NULL,
  channel             text NOT NULL CHECK (channel IN ('sms', 'email', 'chat', 'push', 'webhook')),
  recipient           text NOT NULL,
  conversation        text COLLATE "C",
  reference           text COLLATE "C",
  intent              text COLLATE "C",
  intent_guard        text COLLATE "C",
  provider            text NOT NULL,
  traceparent         text,
  created_at          timestamptz(3) NOT NULL DEFAULT now(),
  updated_at          timestamptz(3) NOT NULL DEFAULT now(),
  send_at             timestamptz(3),
  not_after           timestamptz(3) NOT NULL,
  version             integer NOT NULL CHECK (version > 0),
  status              text NOT NULL,
  failed_reason       text,
  attempts            integer NOT NULL CHECK (attempts >= 0),
  earlier_verdict     text CHECK (earlier_verdict IN ('accepted', 'rejected', 'not_sent', 'unknown')),
  attempt_id          uuid,
  attempt_provider    text,
  attempt_started_at  timestamptz(3),
  lease_until         timestamptz(3),
  attempt_ended_at    timestamptz(3),
  outcome             text CHECK (outcome IN ('accepted', 'rejected', 'not_sent', 'unknown')),
  evidence            text,
  due_at              timestamptz(3),
  provider_message_id text,
  sent_at             timestamptz(3),
  resolution          text,
  answer_status       smallint,

  -- What each status needs, in the words of src/core/message.ts (compared in a test). A CHECK is passed by NULL as by
  -- true, so each of these is a statement that cannot be NULL, or says IS TRUE.
  CONSTRAINT status_is_known CHECK (
    status IN ('scheduled', 'queued', 'sending', 'unknown', 'sent', 'failed', 'canceled')),
  CONSTRAINT attempt_is_whole CHECK (
    (attempt_id IS NULL) = (attempts = 0)
    AND (attempt_id IS NULL) = (attempt_started_at IS NULL)
    AND (attempt_id IS NULL) = (attempt_provider IS NULL)),
  CONSTRAINT outcome_is_whole CHECK (
    (outcome IS NULL) = (attempt_ended_at IS NULL) AND (outcome IS NULL) = (evidence IS NULL)
    AND (outcome IS NULL OR attempt_id IS NOT NULL)),
  CONSTRAINT only_sending_runs CHECK ((status = 'sending') = (attempt_id IS NOT NULL AND outcome IS NULL)),
  CONSTRAINT scheduled_has_not_begun CHECK (status <> 'scheduled' OR (send_at IS NOT NULL AND attempts = 0)),
  CONSTRAINT queued_was_not_sent CHECK (
    status <> 'queued' OR (due_at IS NOT NULL AND (outcome IS NULL OR outcome = 'not_sent'))),
  CONSTRAINT sending_has_a_lease CHECK (status <> 'sending' OR lease_until IS NOT NULL),
  CONSTRAINT unknown_has_evidence CHECK (
    status <> 'unknown' OR (outcome = 'unknown') IS TRUE OR (outcome IS NOT NULL AND earlier_verdict = 'unknown') IS TRUE),
  CONSTRAINT sent_was_accepted CHECK (
    status <> 'sent'
    OR (sent_at IS NOT NULL AND outcome IS NOT NULL AND (outcome = 'accepted' OR resolution IS NOT NULL))),
  CONSTRAINT failed_has_a_reason CHECK (
    CASE WHEN status <> 'failed' THEN failed_reason IS NULL
      ELSE CASE failed_reason
        WHEN 'provider_refused' THEN (outcome = 'rejected') IS TRUE
        WHEN 'expired' THEN outcome IS NULL OR outcome = 'not_sent'
        WHEN 'resolved_not_sent' THEN resolution IS NOT NULL AND outcome IS NOT NULL
        ELSE false END
    END),
  CONSTRAINT canceled_was_not_sent CHECK (status <> 'canceled' OR outcome IS NULL OR outcome = 'not_sent'),
  CONSTRAINT final_has_its_answer CHECK ((status IN ('sent', 'failed', 'canceled')) = (answer_status IS NOT NULL)),
  CONSTRAINT intent_is_guarded CHECK (
    CASE WHEN status IN ('failed', 'canceled') THEN intent_guard IS NULL
      ELSE intent_guard IS NULL OR (intent_guard = intent) IS TRUE END)
)
-- Room in each page for the outcome update to stay there (HOT): no index below names a column that an outcome changes.
WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- The stored answers, as bytes. A table of their own: an outcome must not lengthen the row of a message so much that its
-- update leaves the page.
CREATE TABLE answers (
  message_id   uuid PRIMARY KEY,
  status       smallint NOT NULL,
  content_type text NOT NULL,
  location     text,
  body         text NOT NULL
);

CREATE INDEX messages_by_scope ON messages (account_id, environment, id);
-- The rescuer scans the claims of the last minutes for lapsed leases.
CREATE INDEX messages_by_age ON messages (created_at);
CREATE UNIQUE INDEX messages_one_per_intent ON messages (account_id, environment, intent_guard)
  WHERE intent_guard IS NOT NULL;
-- "Did this customer get it?" A hash, for a device token may be longer than a B-tree takes.
CREATE INDEX messages_by_recipient ON messages USING hash (recipient);
CREATE INDEX messages_by_reference ON messages (account_id, environment, reference, id) WHERE reference IS NOT NULL;
CREATE INDEX messages_by_conversation ON messages (account_id, environment, conversation, id)
  WHERE conversation IS NOT NULL;

-- `unknown` is due at infinity: no worker takes it, a person does.
CREATE TABLE due_work (
  message_id uuid PRIMARY KEY,
  task       text NOT NULL CHECK (task IN ('dispatch', 'lease', 'unknown')),
  due_at     timestamptz(3) NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX due_work_by_time ON due_work (due_at);

CREATE TABLE events (
  id         uuid PRIMARY KEY,
  message_id uuid NOT NULL,
  type       text NOT NULL,
  at         timestamptz(3) NOT NULL,
  attempt_id uuid,
  data       text NOT NULL
);

CREATE INDEX events_of_message ON events (message_id, id);

CREATE TABLE erased_messages (
  message_id uuid PRIMARY KEY,
  status     text NOT NULL CHECK (status IN ('sent', 'failed', 'canceled')),
  erased_at  timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE sweeps (
  name       text PRIMARY KEY,
  seen_until timestamptz(3) NOT NULL
);
