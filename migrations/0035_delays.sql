-- An API of the version before puts a turn off by its time alone: it is delayed from then on. A time that is not after now() puts nothing off.
CREATE FUNCTION "delay_turn"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW."is_delayed" := true;
  RETURN NEW;
END $$;--> statement-breakpoint
CREATE TRIGGER "delay" BEFORE UPDATE OF "run_at" ON "turns" FOR EACH ROW
  WHEN (NEW."run_at" > now() AND NOT OLD."is_delayed" AND NOT NEW."is_delayed") EXECUTE FUNCTION "delay_turn"();
