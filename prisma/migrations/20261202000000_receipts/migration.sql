-- What providers tell later, by webhook. Receipts are inserted first and applied once, and the message holds what they say.

ALTER TABLE messages
  -- JSON: what the last receipt of a delivery told.
  ADD COLUMN delivery text,
  -- JSON: a receipt that came while the call runs, and settles what the call leaves open.
  ADD COLUMN proof    text,
  ADD CONSTRAINT only_what_was_accepted_is_delivered CHECK (delivery IS NULL OR status IN ('sending', 'sent')),
  ADD CONSTRAINT only_what_runs_has_a_proof CHECK (proof IS NULL OR status = 'sending');

-- The ids of events already acted on: the insert comes before the effect, under this primary key. No foreign key: what
-- names a message that is not known (yet) is kept all the same, without `applied_at`.
CREATE TABLE receipts (
  provider            text COLLATE "C" NOT NULL,
  event_id            text COLLATE "C" NOT NULL CHECK (octet_length(event_id) BETWEEN 1 AND 255),
  environment         text NOT NULL CHECK (environment IN ('live', 'test')),
  received_at         timestamptz(3) NOT NULL DEFAULT now(),
  -- The message that it names, and the attempt where it does.
  message_id          uuid NOT NULL,
  attempt_id          uuid,
  kind                text NOT NULL CHECK (kind IN ('accepted', 'delivered', 'undelivered')),
  provider_message_id text,
  code                text,
  occurred_at         timestamptz(3) NOT NULL,
  applied_at          timestamptz(3),
  PRIMARY KEY (provider, event_id)
)
-- Room for the mark that it was applied to stay in its page: no index names that column.
WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- For retention, and for the worker that looks through what came lately.
CREATE INDEX receipts_by_age ON receipts (received_at);
