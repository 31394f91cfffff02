CREATE TABLE "task_secrets" (
	"task" uuid NOT NULL,
	"turn" integer NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"key" text NOT NULL,
	"sealed" text NOT NULL,
	CONSTRAINT "task_secrets_task_turn_pk" PRIMARY KEY("task","turn")
);
--> statement-breakpoint
ALTER TABLE "task_secrets" ADD CONSTRAINT "task_secrets_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "task_secrets_key" ON "task_secrets" USING btree ("key");--> statement-breakpoint

ALTER TABLE "task_secrets" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "task_secrets" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "task_secrets" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "task_secrets" TO "rivulet_tenant";
END $$;
