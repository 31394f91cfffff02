CREATE TABLE "signals" (
	"id" uuid PRIMARY KEY NOT NULL,
	"task" uuid NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"name" text NOT NULL,
	"data" json NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waits" (
	"id" uuid PRIMARY KEY NOT NULL,
	"task" uuid NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"turn" uuid NOT NULL,
	"number" integer NOT NULL,
	"agent" text NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"request" json NOT NULL,
	"assignee" text,
	"metadata" jsonb NOT NULL,
	"child" uuid,
	"status" text NOT NULL,
	"answer" json,
	"told" boolean DEFAULT false NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "waits_turn_name" UNIQUE("turn","name")
);
--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "waits" json;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "waits_version" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "kept_to" integer;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "parked_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "resumed" text;--> statement-breakpoint
ALTER TABLE "signals" ADD CONSTRAINT "signals_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "waits" ADD CONSTRAINT "waits_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "waits" ADD CONSTRAINT "waits_turn_turns_id_fk" FOREIGN KEY ("turn") REFERENCES "public"."turns"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "signals_task_name" ON "signals" USING btree ("task","name","id");--> statement-breakpoint
CREATE INDEX "signals_created_at" ON "signals" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "waits_tenant_status_id" ON "waits" USING btree ("tenant","status","id");--> statement-breakpoint
CREATE INDEX "waits_task" ON "waits" USING btree ("task");--> statement-breakpoint
CREATE INDEX "waits_child" ON "waits" USING btree ("child") WHERE "waits"."child" is not null;--> statement-breakpoint
CREATE INDEX "waits_owed" ON "waits" USING btree ("turn") WHERE not "waits"."told";--> statement-breakpoint
CREATE INDEX "waits_expiry" ON "waits" USING btree ("expires_at") WHERE "waits"."status" = 'open';--> statement-breakpoint

-- Behind the same wall as the other tables.
ALTER TABLE "waits" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "waits" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "waits" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "signals" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "signals" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "signals" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "waits", "signals" TO "rivulet_tenant";
END $$;
--> statement-breakpoint

-- The feed has one entry for each wait that opens, and one for each that closes.
CREATE FUNCTION "feed_wait_changed"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO "feed" ("tenant", "type", "task", "agent", "turn", "status") VALUES (NEW."tenant", 'turn.waiting', NEW."task", NEW."agent", NEW."number", 'waiting');
  END IF;
  IF NEW."status" <> 'open' THEN
    INSERT INTO "feed" ("tenant", "type", "task", "agent", "turn") VALUES (NEW."tenant", 'turn.resumed', NEW."task", NEW."agent", NEW."number");
  END IF;
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "feed_wait_opened" AFTER INSERT ON "waits" FOR EACH ROW EXECUTE FUNCTION "feed_wait_changed"();--> statement-breakpoint
CREATE TRIGGER "feed_wait_closed" AFTER UPDATE OF "status" ON "waits" FOR EACH ROW WHEN (OLD."status" = 'open' AND NEW."status" <> 'open') EXECUTE FUNCTION "feed_wait_changed"();
