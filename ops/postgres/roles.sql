-- The login of the API: neither a superuser, nor the owner of the tables, nor a role that row-level security does not hold.
--
-- Run by psql, as the role that runs the migrations, before or after them, and as often as you like:
--   POSTGRES_API_PASSWORD=… psql <url of that role> --file ops/postgres/roles.sql
-- The API then starts with DATABASE_URL=postgres://rivulet_api:…@host/rivulet and MIGRATE=off, because it can no longer change the schema.
\set ON_ERROR_STOP on
\getenv password POSTGRES_API_PASSWORD

DO $$ BEGIN
  CREATE ROLE rivulet_api NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
ALTER ROLE rivulet_api LOGIN PASSWORD :'password';

-- The role that the connections of tenants take. The migrations make it as well, where they may.
DO $$ BEGIN
  CREATE ROLE rivulet_tenant NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
GRANT rivulet_tenant TO rivulet_api;

-- Rows, and nothing about tables: it cannot switch row-level security off, because that takes the owner.
GRANT USAGE ON SCHEMA public TO rivulet_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO rivulet_api;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO rivulet_api;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO rivulet_api;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO rivulet_api;

-- Which migrations were applied: the API looks before it starts.
CREATE SCHEMA IF NOT EXISTS drizzle;
GRANT USAGE ON SCHEMA drizzle TO rivulet_api;
GRANT SELECT ON ALL TABLES IN SCHEMA drizzle TO rivulet_api;
ALTER DEFAULT PRIVILEGES IN SCHEMA drizzle GRANT SELECT ON TABLES TO rivulet_api;
