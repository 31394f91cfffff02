CREATE INDEX CONCURRENTLY "turns_unfinished" ON "turns" USING btree ("tenant") WHERE "turns"."status" in ('queued', 'running', 'waiting') and not "turns"."canceling";
