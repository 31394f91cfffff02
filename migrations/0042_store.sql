CREATE TABLE "memory_sizes" (
	"tenant" text DEFAULT 'default' NOT NULL,
	"scope" text NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	"version" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "memory_sizes_tenant_scope_pk" PRIMARY KEY("tenant","scope")
);
--> statement-breakpoint
CREATE TABLE "memory_values" (
	"tenant" text DEFAULT 'default' NOT NULL,
	"scope" text NOT NULL,
	"key" text NOT NULL,
	"version" integer NOT NULL,
	"change" text,
	"value" json NOT NULL,
	"words" "tsvector" NOT NULL,
	"bytes" integer NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "memory_values_tenant_scope_key_pk" PRIMARY KEY("tenant","scope","key")
);
--> statement-breakpoint
-- Keys are in the order of their bytes, so a page ends at the same place in every collation.
ALTER TABLE "memory_values" ALTER COLUMN "key" TYPE text COLLATE "C";--> statement-breakpoint
ALTER TABLE "memory_sizes" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "memory_sizes" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "memory_sizes" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "memory_values" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "memory_values" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "memory_values" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "memory_sizes", "memory_values" TO "rivulet_tenant";
END $$;
