CREATE INDEX CONCURRENTLY "turns_status_at" ON "turns" USING btree ("tenant",coalesce("finished_at", "started_at", "queued_at"),"id");
