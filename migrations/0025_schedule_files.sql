CREATE TABLE "schedule_files" (
	"schedule" uuid NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"file" uuid NOT NULL,
	CONSTRAINT "schedule_files_schedule_file_pk" PRIMARY KEY("schedule","file")
);
--> statement-breakpoint
ALTER TABLE "schedule_files" ADD CONSTRAINT "schedule_files_schedule_schedules_id_fk" FOREIGN KEY ("schedule") REFERENCES "public"."schedules"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "schedule_files" ADD CONSTRAINT "schedule_files_files" FOREIGN KEY ("tenant","file") REFERENCES "public"."files"("tenant","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "schedule_files_file" ON "schedule_files" USING btree ("file");--> statement-breakpoint

ALTER TABLE "schedule_files" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "schedule_files" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "schedule_files" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "schedule_files" TO "rivulet_tenant";
END $$;--> statement-breakpoint

-- A file goes with the last task or schedule that refers to it.
CREATE OR REPLACE FUNCTION "release_files"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM FROM "files" WHERE "id" IN (SELECT "file" FROM "gone") ORDER BY "id" FOR UPDATE;
  WITH "released" AS (
    DELETE FROM "files" WHERE "id" IN (SELECT "file" FROM "gone")
      AND NOT EXISTS (SELECT FROM "task_files" WHERE "task_files"."file" = "files"."id")
      AND NOT EXISTS (SELECT FROM "schedule_files" WHERE "schedule_files"."file" = "files"."id")
    RETURNING "id", "tenant", "store"
  ) INSERT INTO "loose_files" ("id", "tenant", "store", "touched_at") SELECT "id", "tenant", "store", 'epoch' FROM "released";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "release_files" AFTER DELETE ON "schedule_files" REFERENCING OLD TABLE AS "gone" FOR EACH STATEMENT EXECUTE FUNCTION "release_files"();
