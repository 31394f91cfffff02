CREATE TABLE "usage" (
	"turn" uuid NOT NULL,
	"id" text NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"task" uuid NOT NULL,
	"root" uuid NOT NULL,
	"agent" text NOT NULL,
	"concurrency_key" text,
	"attempt" integer NOT NULL,
	"model" text,
	"usage" json NOT NULL,
	"tokens" double precision NOT NULL,
	"cost" numeric,
	"at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "usage_turn_id_pk" PRIMARY KEY("turn","id")
);
--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "response" json;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "budget" json;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "usage_total" json;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "cost" double precision;--> statement-breakpoint
CREATE INDEX "usage_tenant_at" ON "usage" USING btree ("tenant","at");--> statement-breakpoint
CREATE INDEX "usage_at" ON "usage" USING btree ("at");--> statement-breakpoint
CREATE INDEX "usage_root" ON "usage" USING btree ("root");--> statement-breakpoint

ALTER TABLE "usage" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "usage" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "usage" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT ON "usage" TO "rivulet_tenant";
END $$;
