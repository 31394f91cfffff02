ALTER TABLE "turns" ADD COLUMN "joins" text;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "joined_to" integer;--> statement-breakpoint
ALTER TABLE "turns" ADD COLUMN "join_index" integer;