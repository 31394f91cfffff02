CREATE TABLE "children" (
	"child" uuid PRIMARY KEY NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"parent" uuid NOT NULL,
	"turn" uuid NOT NULL,
	"number" integer NOT NULL,
	"name" text NOT NULL,
	"call_id" text,
	"root" uuid NOT NULL,
	"depth" integer NOT NULL,
	"ends_with_parent" boolean NOT NULL,
	"status" text,
	"owed" boolean DEFAULT true NOT NULL,
	CONSTRAINT "children_turn_name" UNIQUE("turn","name")
);
--> statement-breakpoint
CREATE INDEX "children_root" ON "children" USING btree ("root");--> statement-breakpoint
CREATE INDEX "children_owed" ON "children" USING btree ("parent") WHERE "children"."owed";--> statement-breakpoint
CREATE INDEX "tasks_parent" ON "tasks" USING btree ("parent","id") WHERE "tasks"."parent" is not null;--> statement-breakpoint

ALTER TABLE "children" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "children" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "children" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "children" TO "rivulet_tenant";
END $$;
--> statement-breakpoint
-- The rows of a tree go with its root.
CREATE FUNCTION "remove_tree"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM "children" WHERE "root" = OLD."id";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "remove_tree" AFTER DELETE ON "tasks" FOR EACH ROW EXECUTE FUNCTION "remove_tree"();
