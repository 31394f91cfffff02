CREATE TABLE "steps" (
	"turn" uuid NOT NULL,
	"name" text NOT NULL,
	"memory" text NOT NULL,
	CONSTRAINT "steps_turn_name_pk" PRIMARY KEY("turn","name")
);
--> statement-breakpoint
ALTER TABLE "steps" ADD CONSTRAINT "steps_turn_turns_id_fk" FOREIGN KEY ("turn") REFERENCES "public"."turns"("id") ON DELETE cascade ON UPDATE no action;