CREATE TABLE "file_chunks" (
	"file" uuid NOT NULL,
	"number" integer NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"bytes" "bytea" NOT NULL,
	CONSTRAINT "file_chunks_file_number_pk" PRIMARY KEY("file","number")
);
--> statement-breakpoint
CREATE TABLE "files" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"name" text,
	"mime_type" text NOT NULL,
	"size" bigint NOT NULL,
	"sha256" text NOT NULL,
	"store" text NOT NULL,
	"uploaded_for" uuid,
	"is_spill" boolean DEFAULT false NOT NULL,
	"is_used" boolean DEFAULT false NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "files_tenant_id" UNIQUE("tenant","id")
);
--> statement-breakpoint
CREATE TABLE "loose_files" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"store" text NOT NULL,
	"touched_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "task_files" (
	"task" uuid NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"file" uuid NOT NULL,
	CONSTRAINT "task_files_task_file_pk" PRIMARY KEY("task","file")
);
--> statement-breakpoint
ALTER TABLE "task_files" ADD CONSTRAINT "task_files_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "task_files" ADD CONSTRAINT "task_files_files" FOREIGN KEY ("tenant","file") REFERENCES "public"."files"("tenant","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "files_unused" ON "files" USING btree ("created_at") WHERE not "files"."is_used";--> statement-breakpoint
CREATE INDEX "loose_files_touched_at" ON "loose_files" USING btree ("touched_at");--> statement-breakpoint
CREATE INDEX "task_files_file" ON "task_files" USING btree ("file");--> statement-breakpoint

-- Most files are compressed already: Postgres shall not try again, piece by piece.
ALTER TABLE "file_chunks" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;--> statement-breakpoint

-- Behind the same wall as the other tables.
ALTER TABLE "files" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "files" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "files" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "task_files" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "task_files" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "task_files" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "loose_files" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "loose_files" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "loose_files" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "file_chunks" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "file_chunks" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "file_chunks" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "files", "task_files", "loose_files", "file_chunks" TO "rivulet_tenant";
END $$;--> statement-breakpoint

-- A file goes with the last task that refers to it, whatever removes that task. The files are locked first, because of two tasks that go at the same
-- time each would see the reference of the other. The bytes are loose from then on, and the reconciler removes them.
CREATE FUNCTION "release_files"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM FROM "files" WHERE "id" IN (SELECT "file" FROM "gone") ORDER BY "id" FOR UPDATE;
  WITH "released" AS (
    DELETE FROM "files" WHERE "id" IN (SELECT "file" FROM "gone")
      AND NOT EXISTS (SELECT FROM "task_files" WHERE "task_files"."file" = "files"."id")
    RETURNING "id", "tenant", "store"
  ) INSERT INTO "loose_files" ("id", "tenant", "store", "touched_at") SELECT "id", "tenant", "store", 'epoch' FROM "released";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "release_files" AFTER DELETE ON "task_files" REFERENCING OLD TABLE AS "gone" FOR EACH STATEMENT EXECUTE FUNCTION "release_files"();
