CREATE TABLE "attempts" (
	"turn" uuid NOT NULL,
	"tenant" text DEFAULT 'default' NOT NULL,
	"attempt" integer NOT NULL,
	"status" text NOT NULL,
	"worker" text,
	"started_at" timestamp (3) with time zone,
	"finished_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"error" json NOT NULL,
	"error_detail" text,
	"usage" json,
	"messages" json NOT NULL,
	"is_cut" boolean DEFAULT false NOT NULL,
	CONSTRAINT "attempts_turn_attempt_pk" PRIMARY KEY("turn","attempt")
);
--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "attempt_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_turn_turns_id_fk" FOREIGN KEY ("turn") REFERENCES "public"."turns"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint

ALTER TABLE "attempts" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
ALTER TABLE "attempts" FORCE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY "tenant" ON "attempts" USING ("tenant" = (SELECT current_setting('rivulet.tenant', true)) OR (SELECT current_setting('rivulet.tenant', true)) = '*');--> statement-breakpoint
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rivulet_tenant') THEN RETURN; END IF;
  GRANT SELECT ON "attempts" TO "rivulet_tenant";
END $$;
