CREATE INDEX CONCURRENTLY "turns_due" ON "turns" USING btree ((case when "is_delayed" then "run_at" else '-infinity' end),"run_at") WHERE "turns"."status" = 'queued';
