-- Who holds an API key (`kind`), what it may do beyond its scopes (`policy`), and the secret before the present one, which
-- holds until its successor has been spread.

ALTER TABLE api_keys
  ADD COLUMN kind                 text CHECK (kind IN ('service', 'agent', 'person')),
  -- A label for people, one line.
  ADD COLUMN name                 text CHECK (char_length(name) BETWEEN 1 AND 100),
  -- JSON: what differs from the defaults of the kind.
  ADD COLUMN policy               text,
  ADD COLUMN previous_secret_hash bytea CHECK (octet_length(previous_secret_hash) = 32),
  ADD COLUMN previous_until       timestamptz(3),
  -- The id of the API key that made it, or the user of a command line (null: made before this was kept).
  ADD COLUMN created_by           text;

-- Whoever could approve or settle was meant to be a person. Nobody else was told apart until now.
UPDATE api_keys SET kind = CASE WHEN scopes && ARRAY['approve', 'resolve'] THEN 'person' ELSE 'service' END;

ALTER TABLE api_keys
  ALTER COLUMN kind SET NOT NULL,
  ADD CONSTRAINT kind_holds_its_scopes CHECK (
    CASE kind
      WHEN 'agent' THEN scopes <@ ARRAY['send', 'read']
      WHEN 'service' THEN scopes <@ ARRAY['send', 'read', 'admin']
      ELSE true END),
  ADD CONSTRAINT previous_secret_lapses CHECK ((previous_secret_hash IS NULL) = (previous_until IS NULL));

-- For lists, newest first.
CREATE INDEX api_keys_by_scope ON api_keys (account_id, environment, created_at, id);
