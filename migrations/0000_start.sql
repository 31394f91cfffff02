CREATE TABLE "agents" (
	"name" text PRIMARY KEY NOT NULL,
	"description" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"key" text PRIMARY KEY NOT NULL,
	"fingerprint" text NOT NULL,
	"status" integer,
	"body" json,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"task" uuid NOT NULL,
	"index" integer NOT NULL,
	"turn" integer NOT NULL,
	"attempt" integer NOT NULL,
	"author" text NOT NULL,
	"content" json NOT NULL,
	"metadata" json NOT NULL,
	"status" text NOT NULL,
	"stop_reason" text,
	"usage" json,
	"error" json,
	"created_at" timestamp (3) with time zone NOT NULL,
	"finished_at" timestamp (3) with time zone,
	CONSTRAINT "messages_task_index_pk" PRIMARY KEY("task","index")
);
--> statement-breakpoint
CREATE TABLE "outbox" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"turn" uuid NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tasks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"agent" text NOT NULL,
	"name" text,
	"status" text NOT NULL,
	"params" json,
	"metadata" jsonb NOT NULL,
	"epoch" bigint NOT NULL,
	"priority" integer NOT NULL,
	"timeout_ms" bigint NOT NULL,
	"max_attempts" integer NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "turns" (
	"id" uuid PRIMARY KEY NOT NULL,
	"task" uuid NOT NULL,
	"number" integer NOT NULL,
	"status" text NOT NULL,
	"attempt" integer NOT NULL,
	"input" json,
	"params" json,
	"stop_reason" text,
	"usage" json,
	"error" json,
	"queued_at" timestamp (3) with time zone NOT NULL,
	"started_at" timestamp (3) with time zone,
	"finished_at" timestamp (3) with time zone,
	"run_at" timestamp (3) with time zone NOT NULL,
	"deadline" timestamp (3) with time zone NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"deaths" integer DEFAULT 0 NOT NULL,
	"dispatch" integer DEFAULT 0 NOT NULL,
	"first_index" integer,
	"epoch" bigint,
	"claim" text,
	"worker" text,
	"lease_until" timestamp (3) with time zone,
	"canceling" boolean DEFAULT false NOT NULL,
	"announced" boolean DEFAULT false NOT NULL,
	CONSTRAINT "turns_task_number" UNIQUE("task","number")
);
--> statement-breakpoint
CREATE TABLE "workers" (
	"id" text PRIMARY KEY NOT NULL,
	"agents" text[] NOT NULL,
	"seen_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "messages" ADD CONSTRAINT "messages_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "messages" ADD CONSTRAINT "messages_turn" FOREIGN KEY ("task","turn") REFERENCES "public"."turns"("task","number") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_turn_turns_id_fk" FOREIGN KEY ("turn") REFERENCES "public"."turns"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "turns" ADD CONSTRAINT "turns_task_tasks_id_fk" FOREIGN KEY ("task") REFERENCES "public"."tasks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "idempotency_keys_created_at" ON "idempotency_keys" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "messages_task_turn" ON "messages" USING btree ("task","turn");--> statement-breakpoint
CREATE UNIQUE INDEX "tasks_agent_name" ON "tasks" USING btree ("agent","name");--> statement-breakpoint
CREATE INDEX "tasks_agent_id" ON "tasks" USING btree ("agent","id");--> statement-breakpoint
CREATE INDEX "tasks_status_id" ON "tasks" USING btree ("status","id");--> statement-breakpoint
CREATE INDEX "tasks_metadata" ON "tasks" USING gin ("metadata" jsonb_path_ops);--> statement-breakpoint
CREATE INDEX "turns_queued" ON "turns" USING btree ("run_at") WHERE "turns"."status" = 'queued';--> statement-breakpoint
CREATE INDEX "turns_running" ON "turns" USING btree ("lease_until") WHERE "turns"."status" = 'running';--> statement-breakpoint
CREATE INDEX "turns_deadline" ON "turns" USING btree ("deadline") WHERE "turns"."status" in ('queued', 'running', 'waiting');--> statement-breakpoint
CREATE INDEX "turns_owed" ON "turns" USING btree ("finished_at") WHERE "turns"."status" in ('completed', 'failed', 'canceled') and not "turns"."announced";