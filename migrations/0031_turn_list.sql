-- The index turns_status_at is in concurrent/turns_status_at.sql, because building it in a transaction would block every change of a turn.
SELECT 1;
