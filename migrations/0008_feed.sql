CREATE TABLE "feed" (
	"xid" bigint DEFAULT (pg_current_xact_id()::text)::bigint NOT NULL,
	"seq" bigserial NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"type" text NOT NULL,
	"task" uuid NOT NULL,
	"agent" text NOT NULL,
	"turn" integer,
	"attempt" integer,
	"status" text,
	"error_code" text,
	"at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "feed_xid_seq_pk" PRIMARY KEY("xid","seq")
);
--> statement-breakpoint
CREATE INDEX "feed_tenant" ON "feed" USING btree ("tenant","xid","seq");
--> statement-breakpoint

ALTER TABLE "feed" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "feed" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "feed" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT ON "feed" TO "rivulet_tenant";
  GRANT USAGE ON SEQUENCE "feed_seq_seq" TO "rivulet_tenant";
END $$;--> statement-breakpoint

-- The feed is written by triggers, so that no statement that changes a task or a turn can leave it out.
-- A statement that inserts a task and its first turn fires the trigger of the turns first. So that one adds the entry of a new task, too, and the trigger
-- of the tasks adds it only where it is missing.
CREATE FUNCTION "feed_tasks_added"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "status")
  SELECT "tenant", 'task.created', "id", "agent", "status" FROM added
  WHERE NOT EXISTS (
    SELECT FROM "feed" WHERE "feed"."xid" = (pg_current_xact_id()::text)::bigint AND "feed"."task" = added."id" AND "feed"."type" = 'task.created'
  );
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "feed_tasks_added" AFTER INSERT ON "tasks" REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION "feed_tasks_added"();--> statement-breakpoint
CREATE FUNCTION "feed_tasks_removed"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "status") SELECT "tenant", 'task.deleted', "id", "agent", "status" FROM removed;
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "feed_tasks_removed" AFTER DELETE ON "tasks" REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION "feed_tasks_removed"();--> statement-breakpoint
CREATE FUNCTION "feed_turns_added"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "status")
  SELECT "tasks"."tenant", 'task.created', "tasks"."id", "tasks"."agent", "tasks"."status" FROM added JOIN "tasks" ON "tasks"."id" = added."task"
  WHERE added."number" = 1 AND "tasks"."xmin" = pg_current_xact_id()::xid AND NOT EXISTS (
    SELECT FROM "feed" WHERE "feed"."xid" = (pg_current_xact_id()::text)::bigint AND "feed"."task" = "tasks"."id" AND "feed"."type" = 'task.created'
  );
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "turn", "status")
  SELECT added."tenant", 'turn.queued', added."task", "tasks"."agent", added."number", added."status"
  FROM added JOIN "tasks" ON "tasks"."id" = added."task" ORDER BY added."task", added."number";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "feed_turns_added" AFTER INSERT ON "turns" REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION "feed_turns_added"();--> statement-breakpoint
-- By row, and only where the status changes: heartbeats update turns, too. A turn that goes on under the same attempt does not start again.
CREATE FUNCTION "feed_turn_changed"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE changed text := CASE
  WHEN NEW."status" = 'running' AND NEW."attempt" > OLD."attempt" THEN 'turn.started'
  WHEN NEW."status" IN ('completed', 'failed', 'canceled') THEN 'turn.finished'
END;
BEGIN
  IF changed IS NULL THEN RETURN NULL; END IF;
  INSERT INTO "feed" ("tenant", "type", "task", "agent", "turn", "attempt", "status", "error_code")
  SELECT NEW."tenant", changed, NEW."task", "tasks"."agent", NEW."number", NEW."attempt", NEW."status",
    CASE WHEN changed = 'turn.finished' THEN NEW."error"->>'code' END
  FROM "tasks" WHERE "tasks"."id" = NEW."task";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "feed_turn_changed" AFTER UPDATE OF "status" ON "turns" FOR EACH ROW WHEN (OLD."status" IS DISTINCT FROM NEW."status") EXECUTE FUNCTION "feed_turn_changed"();
