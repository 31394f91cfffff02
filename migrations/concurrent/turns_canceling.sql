CREATE INDEX CONCURRENTLY "turns_canceling" ON "turns" USING btree ("queued_at") WHERE "turns"."status" in ('queued', 'running', 'waiting') and "turns"."canceling";
