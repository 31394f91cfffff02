ALTER TABLE "workers" ADD COLUMN "version" text;--> statement-breakpoint
ALTER TABLE "workers" ADD COLUMN "slots" integer;