CREATE INDEX "idempotency_keys_file" ON "idempotency_keys" USING btree ((body -> 'file' ->> 'id'));--> statement-breakpoint
-- The response to an upload has the name of the file, and goes with the file.
CREATE FUNCTION "remove_file_responses"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM "idempotency_keys" WHERE body -> 'file' ->> 'id' = OLD."id"::text;
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "remove_file_responses" AFTER DELETE ON "files" FOR EACH ROW EXECUTE FUNCTION "remove_file_responses"();
