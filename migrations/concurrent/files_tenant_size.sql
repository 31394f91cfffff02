CREATE INDEX CONCURRENTLY "files_tenant_size" ON "files" USING btree ("tenant","size");
