CREATE TABLE "limits" (
	"tenant" text DEFAULT 'default' NOT NULL,
	"agent" text NOT NULL,
	"concurrency" integer,
	"per_key" integer,
	"per_minute" integer,
	"weights" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"paused" boolean DEFAULT false NOT NULL,
	CONSTRAINT "limits_tenant_agent_pk" PRIMARY KEY("tenant","agent")
);
--> statement-breakpoint
CREATE TABLE "starts" (
	"turn" uuid PRIMARY KEY NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"agent" text NOT NULL,
	"share" text NOT NULL,
	"at" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "agent" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "tenant" text DEFAULT 'default' NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "share" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "priority" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "waits" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "concurrency_key" text;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "sent" text;--> statement-breakpoint
ALTER TABLE "starts" ADD CONSTRAINT "starts_turn_turns_id_fk" FOREIGN KEY ("turn") REFERENCES "public"."turns"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "starts_share" ON "starts" USING btree ("agent","tenant","share");--> statement-breakpoint
CREATE INDEX "outbox_turn" ON "outbox" USING btree ("turn");--> statement-breakpoint
CREATE INDEX "outbox_waiting" ON "outbox" USING btree ("agent","tenant","share","priority" DESC NULLS LAST,"id") WHERE "outbox"."waits";--> statement-breakpoint
CREATE INDEX "turns_sent" ON "turns" USING btree ("sent") WHERE "turns"."sent" is not null and "turns"."status" in ('queued', 'running');--> statement-breakpoint

UPDATE "outbox" SET "agent" = "tasks"."agent", "tenant" = "turns"."tenant", "priority" = "tasks"."priority", "waits" = "turns"."sent" IS NULL AND "turns"."run_at" <= now() + interval '1 millisecond'
FROM "turns" JOIN "tasks" ON "tasks"."id" = "turns"."task" WHERE "turns"."id" = "outbox"."turn";--> statement-breakpoint
-- Turns that are in the queue or run have their share of the workers already.
UPDATE "turns" SET "sent" = 'direct' WHERE "status" IN ('queued', 'running') AND "dispatch" > 0
  AND NOT EXISTS (SELECT FROM "outbox" WHERE "outbox"."turn" = "turns"."id");--> statement-breakpoint
CREATE FUNCTION "fill_outbox"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT "tasks"."agent", "turns"."tenant", coalesce("tasks"."concurrency_key", ''), "tasks"."priority", "turns"."sent" IS NULL AND "turns"."run_at" <= now() + interval '1 millisecond'
  INTO NEW."agent", NEW."tenant", NEW."share", NEW."priority", NEW."waits"
  FROM "turns" JOIN "tasks" ON "tasks"."id" = "turns"."task" WHERE "turns"."id" = NEW."turn";
  RETURN NEW;
END $$;--> statement-breakpoint
CREATE TRIGGER "fill_outbox" BEFORE INSERT ON "outbox" FOR EACH ROW EXECUTE FUNCTION "fill_outbox"();--> statement-breakpoint
ALTER TABLE "limits" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "limits" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "limits" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "starts" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "starts" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "starts" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "limits" TO "rivulet_tenant";
END $$;
