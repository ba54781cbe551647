-- What settles an unknown outcome: which provider an attempt went to (a digest of its identity), what was sent, which
-- earlier attempts are open, and what the gateway does next by itself.

ALTER TABLE messages
  ADD COLUMN attempt_number   integer CHECK (attempt_number > 0),
  ADD COLUMN attempt_identity text,
  -- JSON: attempts before the current one that may have been accepted. In place of a fold that could not be taken back.
  ADD COLUMN open_attempts    text,
  -- JSON: the next automatic step.
  ADD COLUMN plan             text,
  -- The request as the provider got it, while it may have to be sent again byte for byte.
  ADD COLUMN rendered         text;

UPDATE messages SET attempt_number = attempts WHERE attempt_id IS NOT NULL;

ALTER TABLE messages
  DROP CONSTRAINT unknown_has_evidence,
  DROP CONSTRAINT attempt_is_whole;
ALTER TABLE messages
  DROP COLUMN earlier_verdict,
  ADD CONSTRAINT attempt_is_whole CHECK (
    (attempt_id IS NULL) = (attempts = 0)
    AND (attempt_id IS NULL) = (attempt_number IS NULL)
    AND (attempt_id IS NULL) = (attempt_started_at IS NULL)
    AND (attempt_id IS NULL) = (attempt_provider IS NULL)),
  ADD CONSTRAINT unknown_has_evidence CHECK (
    status <> 'unknown' OR (outcome = 'unknown') IS TRUE OR (outcome IS NOT NULL AND open_attempts IS NOT NULL)),
  ADD CONSTRAINT only_unknown_has_a_plan CHECK (plan IS NULL OR status = 'unknown'),
  ADD CONSTRAINT only_what_is_not_settled_is_open CHECK (open_attempts IS NULL OR status IN ('sending', 'unknown')),
  ADD CONSTRAINT only_what_may_go_out_is_rendered CHECK (rendered IS NULL OR status IN ('queued', 'sending', 'unknown'));

-- `reconcile`: unknown, and the gateway takes a step by itself.
ALTER TABLE due_work DROP CONSTRAINT due_work_task_check;
ALTER TABLE due_work ADD CONSTRAINT due_work_task_check CHECK (task IN ('dispatch', 'lease', 'reconcile', 'unknown'));
