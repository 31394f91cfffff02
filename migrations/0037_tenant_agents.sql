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
END $$;--> statement-breakpoint
-- As before, but a login that cannot read the identifier compares only how far the server has come, and a transaction that commits meanwhile is no move:
-- the highest entry and the next transaction are of one snapshot.
CREATE OR REPLACE FUNCTION "note_server"() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  here text;
  noted record;
  is_moved boolean;
BEGIN
  -- It may be promoted under this connection.
  IF pg_is_in_recovery() THEN RAISE EXCEPTION 'Postgres is a standby' USING ERRCODE = 'cannot_connect_now'; END IF;
  PERFORM set_config('rivulet.tenant', '*', true);
  BEGIN
    SELECT "system_identifier" || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8) INTO here FROM pg_control_system();
  EXCEPTION WHEN OTHERS THEN NULL; END;
  IF here IS NOT NULL AND EXISTS (SELECT FROM "feed_server" WHERE "server" = here) THEN RETURN false; END IF;
  SELECT "server", "shift", greatest((SELECT max("xid") FROM "feed"), (SELECT max("xid") FROM "audit"), 0) AS "highest",
    (pg_snapshot_xmax(pg_current_snapshot())::text)::bigint AS "following"
  INTO noted FROM "feed_server";
  is_moved := noted."highest" >= noted."following" + noted."shift"
    OR coalesce(here <> noted."server" AND noted."server" <> 'unknown', false);
  IF is_moved THEN
    UPDATE "feed_server" SET "server" = coalesce(here, 'unknown'), "shift" = greatest("shift", noted."highest") + (1::bigint << 36)
    WHERE "shift" = noted."shift";
    RETURN FOUND;
  END IF;
  UPDATE "feed_server" SET "server" = here WHERE here IS NOT NULL AND "shift" = noted."shift" AND ("server" IS NULL OR "server" = 'unknown');
  RETURN false;
END $$;--> statement-breakpoint
-- Times have milliseconds, so now() may be rounded up.
CREATE OR REPLACE TRIGGER "delay" BEFORE UPDATE OF "run_at" ON "turns" FOR EACH ROW
  WHEN (NEW."run_at" > now() + interval '1 millisecond' AND NOT OLD."is_delayed" AND NOT NEW."is_delayed") EXECUTE FUNCTION "delay_turn"();
