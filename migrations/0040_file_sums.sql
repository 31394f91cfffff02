-- The strongest lock on the table of files comes first: to wait for it behind weaker ones would deadlock with an upload.
DROP INDEX IF EXISTS "files_tenant_size";--> statement-breakpoint
CREATE TABLE "file_sums" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"count" bigint NOT NULL,
	"bytes" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "file_sums_tenant" ON "file_sums" USING btree ("tenant");--> statement-breakpoint
ALTER TABLE "file_sums" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "file_sums" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "file_sums" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT ON "file_sums" TO "rivulet_tenant";
END $$;
--> statement-breakpoint
CREATE FUNCTION "sum_files"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  direction integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
  INSERT INTO "file_sums" ("tenant", "count", "bytes")
  SELECT "tenant", direction * count(*), direction * sum("size") FROM "changed" GROUP BY "tenant";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "sum_added_files" AFTER INSERT ON "files" REFERENCING NEW TABLE AS "changed" FOR EACH STATEMENT EXECUTE FUNCTION "sum_files"();--> statement-breakpoint
CREATE TRIGGER "sum_removed_files" AFTER DELETE ON "files" REFERENCING OLD TABLE AS "changed" FOR EACH STATEMENT EXECUTE FUNCTION "sum_files"();--> statement-breakpoint
-- The table is locked until the commit, so no file is missed and none is counted twice.
INSERT INTO "file_sums" ("tenant", "count", "bytes") SELECT "tenant", count(*), sum("size") FROM "files" GROUP BY "tenant";--> statement-breakpoint
-- The index audit_action is in the folder concurrent, because building it in a transaction would block every change.
SELECT 1;
