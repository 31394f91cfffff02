-- The index turns_due is in the folder concurrent, because building it in a transaction would block every change of a row.
SELECT 1;
