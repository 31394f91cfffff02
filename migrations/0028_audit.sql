CREATE TABLE "audit" (
	"xid" bigint DEFAULT (pg_current_xact_id()::text)::bigint NOT NULL,
	"seq" bigserial NOT NULL,
	"tenant" text NOT NULL,
	"action" text NOT NULL,
	"target" text NOT NULL,
	"via" text NOT NULL,
	"key" text,
	"subject" text,
	"address" text,
	"details" json NOT NULL,
	"at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "audit_xid_seq_pk" PRIMARY KEY("xid","seq")
);
--> statement-breakpoint
CREATE INDEX "audit_tenant" ON "audit" USING btree ("tenant","xid","seq");--> statement-breakpoint
CREATE INDEX "audit_at" ON "audit" USING btree ("at");--> statement-breakpoint

ALTER TABLE "audit" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "audit" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "audit" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
-- A connection of a tenant can add an entry. It can neither change nor remove one.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT ON "audit" TO "rivulet_tenant";
  GRANT USAGE ON SEQUENCE "audit_seq_seq" TO "rivulet_tenant";
END $$;
