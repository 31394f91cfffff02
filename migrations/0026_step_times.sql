ALTER TABLE "steps" ALTER COLUMN "memory" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "steps" ADD COLUMN "finished_at" timestamp (3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "steps" ADD COLUMN "duration_ms" integer;--> statement-breakpoint
CREATE INDEX "steps_memory" ON "steps" USING btree ("turn") WHERE "steps"."memory" is not null;