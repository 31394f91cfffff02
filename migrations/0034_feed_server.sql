-- Transactions are numbered by each server of Postgres for itself. So what orders the feed and the audit log is such a number and a shift, which every move
-- to another server raises above all entries before it.
CREATE TABLE "feed_server" (
	"is_only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"server" text,
	"shift" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
INSERT INTO "feed_server" DEFAULT VALUES;--> statement-breakpoint
ALTER TABLE "feed_server" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "feed_server" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "read" ON "feed_server" FOR SELECT USING (true);--> statement-breakpoint
CREATE POLICY "tenant" ON "feed_server" USING ((SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT ON "feed_server" TO "rivulet_tenant";
END $$;--> statement-breakpoint
CREATE FUNCTION "feed_position"() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN
  RETURN (pg_current_xact_id()::text)::bigint + (SELECT "shift" FROM "feed_server");
END $$;--> statement-breakpoint
-- Called by each connection before its first statement, so no row is written on another server before the shift is raised. A server is known by its
-- identifier, which a restored or replicated database does not share, and by its timeline, which a promotion changes. Where a login may read neither, a
-- server is another one if it has not come as far as the highest entry. A cursor may be further than that entry: by less than 2^36 transactions.
CREATE FUNCTION "note_server"() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  here text := 'unknown';
  before bigint;
  highest bigint;
  following bigint := (pg_snapshot_xmax(pg_current_snapshot())::text)::bigint;
BEGIN
  -- It may be promoted under this connection.
  IF pg_is_in_recovery() THEN RAISE EXCEPTION 'Postgres is a standby' USING ERRCODE = 'cannot_connect_now'; END IF;
  PERFORM set_config('rivulet.tenant', '*', true);
  BEGIN
    SELECT "system_identifier" || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8) INTO here FROM pg_control_system();
  EXCEPTION WHEN OTHERS THEN NULL; END;
  SELECT "shift" INTO before FROM "feed_server" WHERE "server" IS DISTINCT FROM here OR here = 'unknown';
  IF before IS NULL THEN RETURN false; END IF;
  SELECT greatest((SELECT max("xid") FROM "feed"), (SELECT max("xid") FROM "audit"), 0) INTO highest;
  UPDATE "feed_server" SET "server" = here, "shift" = greatest("shift", highest) + (1::bigint << 36)
  WHERE ("server" <> here OR highest >= following + "shift") AND "shift" = before;
  IF FOUND THEN RETURN true; END IF;
  UPDATE "feed_server" SET "server" = here WHERE "server" IS NULL;
  RETURN false;
END $$;--> statement-breakpoint
ALTER TABLE "audit" ALTER COLUMN "xid" SET DEFAULT feed_position();--> statement-breakpoint
ALTER TABLE "feed" ALTER COLUMN "xid" SET DEFAULT feed_position();--> statement-breakpoint
ALTER TABLE "feed" ADD COLUMN "on_end" json;--> statement-breakpoint
CREATE OR REPLACE FUNCTION "feed_tasks_added"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "status")
  SELECT "tenant", 'task.created', "id", "agent", "status" FROM added
  WHERE NOT EXISTS (SELECT FROM "feed" WHERE "feed"."xid" = feed_position() AND "feed"."task" = added."id" AND "feed"."type" = 'task.created');
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE OR REPLACE FUNCTION "feed_turns_added"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "status")
  SELECT "tasks"."tenant", 'task.created', "tasks"."id", "tasks"."agent", "tasks"."status" FROM added JOIN "tasks" ON "tasks"."id" = added."task"
  WHERE added."number" = 1 AND "tasks"."xmin" = pg_current_xact_id()::xid AND NOT EXISTS (
    SELECT FROM "feed" WHERE "feed"."xid" = feed_position() AND "feed"."task" = "tasks"."id" AND "feed"."type" = 'task.created'
  );
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "turn", "status")
  SELECT added."tenant", 'turn.queued', added."task", "tasks"."agent", added."number", added."status"
  FROM added JOIN "tasks" ON "tasks"."id" = added."task" ORDER BY added."task", added."number";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE OR REPLACE FUNCTION "feed_turn_changed"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE changed text := CASE
  WHEN NEW."status" = 'running' AND NEW."attempt" > OLD."attempt" THEN 'turn.started'
  WHEN NEW."status" IN ('completed', 'failed', 'canceled') THEN 'turn.finished'
END;
BEGIN
  IF changed IS NULL THEN RETURN NULL; END IF;
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "turn", "attempt", "status", "error_code", "on_end")
  SELECT NEW."tenant", changed, NEW."task", "tasks"."agent", NEW."number", NEW."attempt", NEW."status",
    CASE WHEN changed = 'turn.finished' THEN NEW."error"->>'code' END, CASE WHEN changed = 'turn.finished' THEN "tasks"."on_end" END
  FROM "tasks" WHERE "tasks"."id" = NEW."task";
  RETURN NULL;
END $$;--> statement-breakpoint
-- Without a delay, a turn is due whatever Postgres' clock says. The rows of before, and those of an API of the version before, keep the comparison.
ALTER TABLE "turns" ADD COLUMN "is_delayed" boolean DEFAULT true NOT NULL;--> statement-breakpoint
CREATE OR REPLACE FUNCTION "fill_outbox"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT "tasks"."agent", "turns"."tenant", coalesce("tasks"."concurrency_key", ''), "tasks"."priority",
    "turns"."sent" IS NULL AND (NOT "turns"."is_delayed" OR "turns"."run_at" <= now() + interval '1 millisecond')
  INTO NEW."agent", NEW."tenant", NEW."share", NEW."priority", NEW."waits"
  FROM "turns" JOIN "tasks" ON "tasks"."id" = "turns"."task" WHERE "turns"."id" = NEW."turn";
  RETURN NEW;
END $$;
