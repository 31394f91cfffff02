-- Every row of a client belongs to a tenant; those that are here belong to the default one.
DROP INDEX "tasks_agent_name";--> statement-breakpoint
DROP INDEX "tasks_agent_id";--> statement-breakpoint
DROP INDEX "tasks_status_id";--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD COLUMN "tenant" text DEFAULT 'default' NOT NULL;--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "tenant" text DEFAULT 'default' NOT NULL;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "tenant" text DEFAULT 'default' NOT NULL;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "tenant" text DEFAULT 'default' NOT NULL;--> statement-breakpoint
ALTER TABLE "idempotency_keys" DROP CONSTRAINT "idempotency_keys_pkey";--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_tenant_key_pk" PRIMARY KEY("tenant","key");--> statement-breakpoint
CREATE UNIQUE INDEX "tasks_tenant_agent_name" ON "tasks" USING btree ("tenant","agent","name");--> statement-breakpoint
CREATE INDEX "tasks_tenant_id" ON "tasks" USING btree ("tenant","id");--> statement-breakpoint
CREATE INDEX "tasks_tenant_agent_id" ON "tasks" USING btree ("tenant","agent","id");--> statement-breakpoint
CREATE INDEX "tasks_tenant_status_id" ON "tasks" USING btree ("tenant","status","id");--> statement-breakpoint

-- The second wall. A connection says whose rows it may touch by the setting rivulet.tenant: one tenant, or '*' for what the server does of its
-- own accord. One that says nothing sees nothing. The setting is asked for once a query, not once a row.
ALTER TABLE "tasks" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "tasks" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "tasks" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "turns" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "turns" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "turns" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "messages" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "messages" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "messages" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "idempotency_keys" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "idempotency_keys" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "idempotency_keys" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "keys" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "keys" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "keys" USING ((SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint

-- These belong to the tenant of their turn: the policy looks up the turn under the same rule.
ALTER TABLE "outbox" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "outbox" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "outbox" USING ((SELECT current_setting('rivulet.tenant', true)) = '*' OR EXISTS (SELECT FROM "turns" WHERE "turns"."id" = "outbox"."turn"));--> statement-breakpoint
ALTER TABLE "steps" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "steps" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "steps" USING ((SELECT current_setting('rivulet.tenant', true)) = '*' OR EXISTS (SELECT FROM "turns" WHERE "turns"."id" = "steps"."turn"));--> statement-breakpoint

-- A superuser is not held by any of this, so the API takes a role that is. Roles belong to the whole server: another database may have made it,
-- or be making it now. Who may not create roles is no superuser, and is held as the owner.
DO $$ BEGIN
  CREATE ROLE "rivulet_tenant" NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
END $$;--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT USAGE ON SCHEMA "public" TO "rivulet_tenant";
  GRANT SELECT ON "agents", "workers", "steps" TO "rivulet_tenant";
  GRANT SELECT, INSERT, UPDATE, DELETE ON "tasks", "turns", "messages", "idempotency_keys", "outbox" TO "rivulet_tenant";
  GRANT USAGE ON SEQUENCE "outbox_id_seq" TO "rivulet_tenant";
  BEGIN
    IF NOT pg_has_role('rivulet_tenant', 'member') THEN EXECUTE format('GRANT "rivulet_tenant" TO %I', current_user); END IF;
  EXCEPTION WHEN insufficient_privilege THEN NULL;
  END;
END $$;
