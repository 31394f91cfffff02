-- The indexes turns_timed and turns_canceling are in the folder concurrent, because building them in a transaction would block every change of a row.
DROP INDEX "turns_deadline";
