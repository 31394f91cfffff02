CREATE INDEX CONCURRENTLY "audit_action" ON "audit" USING btree ("tenant","action","xid","seq");
