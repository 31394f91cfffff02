-- Tenants may have agents of one name. The first keeps the name for its queue; the queues of others are named `<agent>@<tenant>`, so that an API of the
-- version before, for which the name is the key, goes on.
ALTER TABLE "agents" ADD COLUMN "agent" text GENERATED ALWAYS AS (split_part("name", '@', 1)) STORED NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "agents_agent" ON "agents" USING btree ("agent",coalesce("tenant", ''));--> statement-breakpoint
ALTER POLICY "agents" ON "agents" USING ((SELECT CASE WHEN coalesce(current_setting('rivulet.agents', true), '') = '' THEN true END) IS NOT NULL OR "agent" = ANY ((SELECT nullif(current_setting('rivulet.agents', true), '')::text[])::text[]));--> statement-breakpoint
-- The queue of a tenant's turns of an agent: that of its own agent, else that of the shared one.
CREATE FUNCTION "queue_of"("tenant" text, "agent" text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce((
    SELECT "name" FROM "agents" WHERE "agents"."agent" = $2 AND ("agents"."tenant" IS NULL OR "agents"."tenant" = $1)
    ORDER BY "agents"."tenant" NULLS LAST LIMIT 1
  ), $2)
$$;--> statement-breakpoint
CREATE OR REPLACE FUNCTION "fill_outbox"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT queue_of("turns"."tenant", "tasks"."agent"), "turns"."tenant", coalesce("tasks"."concurrency_key", ''), "tasks"."priority",
    "turns"."sent" IS NULL AND (NOT "turns"."is_delayed" OR "turns"."run_at" <= now() + interval '1 millisecond')
  INTO NEW."agent", NEW."tenant", NEW."share", NEW."priority", NEW."waits"
  FROM "turns" JOIN "tasks" ON "tasks"."id" = "turns"."task" WHERE "turns"."id" = NEW."turn";
  RETURN NEW;
END $$;
