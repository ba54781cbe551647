-- What each status of a message needs, as one CHECK that calls a function. PostgreSQL parses and plans every CHECK of a table
-- anew for each statement, and does so but once a session for a function: with thirty-one of them that was a third of what a
-- claim and its outcome cost. The words are those of src/core/message.ts (compared in a test).
--
-- Whoever changes the type or the name of a column that stands here, or drops it, makes the function anew in the same migration:
-- PostgreSQL does not see that it is used.

ALTER TABLE messages
  DROP CONSTRAINT messages_environment_check,
  DROP CONSTRAINT messages_channel_check,
  DROP CONSTRAINT messages_version_check,
  DROP CONSTRAINT messages_attempts_check,
  DROP CONSTRAINT messages_outcome_check,
  DROP CONSTRAINT messages_attempt_number_check,
  DROP CONSTRAINT messages_held_for_check,
  DROP CONSTRAINT messages_canceled_reason_check,
  DROP CONSTRAINT messages_conversation_version_check,
  DROP CONSTRAINT messages_content_hash_check,
  DROP CONSTRAINT status_is_known,
  DROP CONSTRAINT attempt_is_whole,
  DROP CONSTRAINT outcome_is_whole,
  DROP CONSTRAINT only_sending_runs,
  DROP CONSTRAINT scheduled_has_not_begun,
  DROP CONSTRAINT queued_was_not_sent,
  DROP CONSTRAINT sending_has_a_lease,
  DROP CONSTRAINT unknown_has_evidence,
  DROP CONSTRAINT sent_was_accepted,
  DROP CONSTRAINT failed_has_a_reason,
  DROP CONSTRAINT canceled_was_not_sent,
  DROP CONSTRAINT final_has_its_answer,
  DROP CONSTRAINT intent_is_guarded,
  DROP CONSTRAINT only_unknown_has_a_plan,
  DROP CONSTRAINT only_what_is_not_settled_is_open,
  DROP CONSTRAINT only_what_may_go_out_is_rendered,
  DROP CONSTRAINT only_what_was_accepted_is_delivered,
  DROP CONSTRAINT only_what_runs_has_a_proof,
  DROP CONSTRAINT held_waits_for_a_person,
  DROP CONSTRAINT only_what_was_held_is_decided,
  DROP CONSTRAINT only_what_was_held_is_declined;

-- A rule is passed by NULL as by true, as in a CHECK: each of these is a statement that cannot be NULL, or says IS TRUE.
CREATE FUNCTION message_is_whole(m messages) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  broken text := CASE
    WHEN NOT (m.environment IN ('live', 'test')) THEN 'messages_environment_check'
    WHEN NOT (m.channel IN ('sms', 'email', 'chat', 'push', 'webhook')) THEN 'messages_channel_check'
    WHEN NOT (m.version > 0) THEN 'messages_version_check'
    WHEN NOT (m.attempts >= 0) THEN 'messages_attempts_check'
    WHEN NOT (m.outcome IN ('accepted', 'rejected', 'not_sent', 'unknown')) THEN 'messages_outcome_check'
    WHEN NOT (m.attempt_number > 0) THEN 'messages_attempt_number_check'
    WHEN NOT (m.held_for IN ('approval', 'duplicate')) THEN 'messages_held_for_check'
    WHEN NOT (m.canceled_reason IN ('declined', 'lapsed', 'conversation_changed')) THEN 'messages_canceled_reason_check'
    WHEN NOT (m.conversation_version >= 0) THEN 'messages_conversation_version_check'
    WHEN NOT (octet_length(m.content_hash) = 16) THEN 'messages_content_hash_check'
    WHEN NOT (m.status IN ('held', 'scheduled', 'queued', 'sending', 'unknown', 'sent', 'failed', 'canceled')) THEN 'status_is_known'
    WHEN NOT (
      (m.attempt_id IS NULL) = (m.attempts = 0)
      AND (m.attempt_id IS NULL) = (m.attempt_number IS NULL)
      AND (m.attempt_id IS NULL) = (m.attempt_started_at IS NULL)
      AND (m.attempt_id IS NULL) = (m.attempt_provider IS NULL)) THEN 'attempt_is_whole'
    WHEN NOT (
      (m.outcome IS NULL) = (m.attempt_ended_at IS NULL) AND (m.outcome IS NULL) = (m.evidence IS NULL)
      AND (m.outcome IS NULL OR m.attempt_id IS NOT NULL)) THEN 'outcome_is_whole'
    WHEN NOT ((m.status = 'sending') = (m.attempt_id IS NOT NULL AND m.outcome IS NULL)) THEN 'only_sending_runs'
    WHEN NOT (m.status <> 'scheduled' OR (m.send_at IS NOT NULL AND m.attempts = 0)) THEN 'scheduled_has_not_begun'
    WHEN NOT (
      m.status <> 'queued' OR (m.due_at IS NOT NULL AND (m.outcome IS NULL OR m.outcome = 'not_sent'))) THEN 'queued_was_not_sent'
    WHEN NOT (m.status <> 'sending' OR m.lease_until IS NOT NULL) THEN 'sending_has_a_lease'
    WHEN NOT (
      m.status <> 'unknown' OR (m.outcome = 'unknown') IS TRUE
      OR (m.outcome IS NOT NULL AND m.open_attempts IS NOT NULL)) THEN 'unknown_has_evidence'
    WHEN NOT (
      m.status <> 'sent'
      OR (m.sent_at IS NOT NULL AND m.outcome IS NOT NULL AND (m.outcome = 'accepted' OR m.resolution IS NOT NULL))) THEN 'sent_was_accepted'
    WHEN NOT (
      CASE WHEN m.status <> 'failed' THEN m.failed_reason IS NULL
        ELSE CASE m.failed_reason
          WHEN 'provider_refused' THEN (m.outcome = 'rejected') IS TRUE
          WHEN 'expired' THEN m.outcome IS NULL OR m.outcome = 'not_sent'
          WHEN 'resolved_not_sent' THEN m.resolution IS NOT NULL AND m.outcome IS NOT NULL
          ELSE false END
      END) THEN 'failed_has_a_reason'
    WHEN NOT (m.status <> 'canceled' OR m.outcome IS NULL OR m.outcome = 'not_sent') THEN 'canceled_was_not_sent'
    WHEN NOT ((m.status IN ('sent', 'failed', 'canceled')) = (m.answer_status IS NOT NULL)) THEN 'final_has_its_answer'
    WHEN NOT (
      CASE WHEN m.status IN ('failed', 'canceled') THEN m.intent_guard IS NULL
        ELSE m.intent_guard IS NULL OR (m.intent_guard = m.intent) IS TRUE END) THEN 'intent_is_guarded'
    WHEN NOT (m.plan IS NULL OR m.status = 'unknown') THEN 'only_unknown_has_a_plan'
    WHEN NOT (m.open_attempts IS NULL OR m.status IN ('sending', 'unknown')) THEN 'only_what_is_not_settled_is_open'
    WHEN NOT (m.rendered IS NULL OR m.status IN ('queued', 'sending', 'unknown')) THEN 'only_what_may_go_out_is_rendered'
    WHEN NOT (m.delivery IS NULL OR m.status IN ('sending', 'sent')) THEN 'only_what_was_accepted_is_delivered'
    WHEN NOT (m.proof IS NULL OR m.status = 'sending') THEN 'only_what_runs_has_a_proof'
    WHEN NOT (
      m.status <> 'held' OR (m.held_for IS NOT NULL AND m.decision IS NULL AND m.attempts = 0)) THEN 'held_waits_for_a_person'
    WHEN NOT (m.decision IS NULL OR m.held_for IS NOT NULL) THEN 'only_what_was_held_is_decided'
    WHEN NOT (
      m.canceled_reason IS NULL
      OR (m.status = 'canceled' AND (m.canceled_reason = 'conversation_changed' OR m.held_for IS NOT NULL))) THEN 'only_what_was_held_is_declined'
  END;
BEGIN
  IF broken IS NULL THEN
    RETURN true;
  END IF;
  -- The rule by its name, and without the row, which PostgreSQL itself would write into its log.
  RAISE check_violation USING
    MESSAGE = 'a message breaks the rule ' || broken, CONSTRAINT = broken, TABLE = 'messages';
END
$$;

-- For a gateway that runs under another role than the migrations, where functions are not everybody's by default.
GRANT EXECUTE ON FUNCTION message_is_whole(messages) TO PUBLIC;

-- The rows that are there have passed the same rules: they are not read again under this lock, but by the next migration.
ALTER TABLE messages ADD CONSTRAINT message_is_whole CHECK (message_is_whole(messages)) NOT VALID;
