CREATE TABLE "secrets" (
	"name" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "token_revocations" (
	"task" uuid NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"subject" text NOT NULL,
	"revoked_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "token_revocations_task_subject_pk" PRIMARY KEY("task","subject")
);
--> statement-breakpoint
ALTER TABLE "agents" ADD COLUMN "tenant" text;--> statement-breakpoint
ALTER TABLE "keys" ADD COLUMN "all_tenants" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "keys" ADD COLUMN "agents" text[];--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "error_detail" text;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "end_cursor" text;--> statement-breakpoint
ALTER TABLE "token_revocations" ADD CONSTRAINT "token_revocations_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint

-- Behind the same wall as the other tables: revocations are each tenant's own, secrets are the server's, an agent without a tenant is for all.
ALTER TABLE "token_revocations" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "token_revocations" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "token_revocations" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "secrets" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "secrets" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "secrets" USING ((SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "agents" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "agents" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "agents" USING ("tenant" IS NULL OR "tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE ON "token_revocations" TO "rivulet_tenant";
END $$;--> statement-breakpoint

-- In 0.1 every worker key served all tenants. A key of the default tenant still does; a key that names another tenant now serves that tenant alone.
UPDATE "keys" SET "all_tenants" = true WHERE 'worker' = ANY("scopes") AND "tenant" = 'default';--> statement-breakpoint

-- From now on the epoch of a task is even after its first change, and no log is written under an odd one.
UPDATE "tasks" SET "epoch" = "epoch" + 1 WHERE "epoch" > 1 AND "epoch" % 2 = 1;
