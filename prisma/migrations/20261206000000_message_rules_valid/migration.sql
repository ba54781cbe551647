-- A look at every row, beside which messages go on being sent.
ALTER TABLE messages VALIDATE CONSTRAINT message_is_whole;
