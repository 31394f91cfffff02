CREATE TABLE "deliveries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"webhook" uuid,
	"task" uuid NOT NULL,
	"type" text NOT NULL,
	"payload" text NOT NULL,
	"on_end" json,
	"status" text DEFAULT 'pending' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"last_status" integer,
	"last_error" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"next_at" timestamp (3) with time zone,
	"delivered_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "feed_readers" (
	"name" text PRIMARY KEY NOT NULL,
	"place" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"url" text NOT NULL,
	"events" text[] NOT NULL,
	"agent" text,
	"status" text NOT NULL,
	"secret" text NOT NULL,
	"old_secret" text,
	"old_secret_until" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "on_end" json;--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_webhook_webhooks_id_fk" FOREIGN KEY ("webhook") REFERENCES "public"."webhooks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "deliveries_due" ON "deliveries" USING btree ("next_at") WHERE "deliveries"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "deliveries_webhook" ON "deliveries" USING btree ("webhook","id");--> statement-breakpoint
CREATE INDEX "deliveries_created" ON "deliveries" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "webhooks_tenant" ON "webhooks" USING btree ("tenant","id");--> statement-breakpoint

ALTER TABLE "webhooks" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "webhooks" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "webhooks" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "deliveries" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "deliveries" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "deliveries" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
ALTER TABLE "feed_readers" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "feed_readers" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "feed_readers" USING ((SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT, INSERT, UPDATE, DELETE ON "webhooks" TO "rivulet_tenant";
  GRANT SELECT, UPDATE ON "deliveries" TO "rivulet_tenant";
END $$;--> statement-breakpoint
INSERT INTO "feed_readers" ("name", "place") VALUES ('webhooks', '0-0');
