CREATE TABLE "states" (
	"task" uuid NOT NULL,
	"turn" integer NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"version" integer NOT NULL,
	"value" json NOT NULL,
	"owed" boolean DEFAULT false NOT NULL,
	CONSTRAINT "states_task_turn_pk" PRIMARY KEY("task","turn")
);
--> statement-breakpoint
ALTER TABLE "states" ADD CONSTRAINT "states_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "states_owed" ON "states" USING btree ("task") WHERE "states"."owed";--> statement-breakpoint

ALTER TABLE "states" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "states" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "states" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "states" TO "rivulet_tenant";
END $$;
