CREATE INDEX "idempotency_keys_task" ON "idempotency_keys" USING btree (coalesce(body -> 'task' ->> 'id', body -> 'turn' ->> 'task', body -> 'wait' ->> 'task'));--> statement-breakpoint
-- The responses about a task go with the task, whichever way it is removed.
CREATE FUNCTION "remove_responses"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM "idempotency_keys" WHERE coalesce(body -> 'task' ->> 'id', body -> 'turn' ->> 'task', body -> 'wait' ->> 'task') = OLD."id"::text;
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "remove_responses" AFTER DELETE ON "tasks" FOR EACH ROW EXECUTE FUNCTION "remove_responses"();
