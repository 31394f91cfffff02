-- The indexes files_tenant_size and turns_due are in the folder concurrent, because building them in a transaction would block every change of a row.
SELECT 1;
