-- Debug information: symbol tables, the files that they are built from, binaries without symbols,
-- jobs that build and fetch tables, and the debuginfod servers that a team uses.
--
-- A build id is hexadecimal: the bytes of the binary's note, for Go's own build ids the text.

-- ---- symbol tables ----

-- The best table that a team has of a binary.
CREATE TABLE symbol_table (
    tenant_id       bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    build_id        text NOT NULL CHECK (build_id ~ '^([0-9a-f]{2}){1,128}$'),
    object_key      text NOT NULL CHECK (length(object_key) <= 200),
    bytes           bigint NOT NULL CHECK (bytes > 0),
    sha256          bytea NOT NULL CHECK (length(sha256) = 32),
    quality         integer NOT NULL, -- bits of lib/symbols/symbol_table_facts.h
    quality_rank    integer NOT NULL, -- a table replaces one of a lower or the same rank
    builder_version integer NOT NULL,
    broken_units    integer NOT NULL,
    functions       bigint NOT NULL,
    source          text NOT NULL CHECK (source IN ('table', 'file', 'upstream')),
    -- The name that the uploader gave.
    file            text NOT NULL DEFAULT '' CHECK (length(file) <= 255),
    -- What the builder left out.
    problem         text NOT NULL DEFAULT '' CHECK (length(problem) <= 600),
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, build_id)
);
SELECT protect_tenant_rows('symbol_table');
CREATE TRIGGER symbol_table_trash AFTER DELETE OR UPDATE OF object_key ON symbol_table
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();

-- Tables that were built from files of public debuginfod servers; all teams use them. They have a
-- limit of bytes, and those whose last use is the oldest are deleted. The same columns as above but
-- tenant_id, and the last time that a result used the table, exact to an hour or so.
CREATE TABLE symbol_table_public (
    build_id        text PRIMARY KEY CHECK (build_id ~ '^([0-9a-f]{2}){1,128}$'),
    object_key      text NOT NULL CHECK (length(object_key) <= 200),
    bytes           bigint NOT NULL CHECK (bytes > 0),
    sha256          bytea NOT NULL CHECK (length(sha256) = 32),
    quality         integer NOT NULL,
    quality_rank    integer NOT NULL,
    builder_version integer NOT NULL,
    broken_units    integer NOT NULL,
    functions       bigint NOT NULL,
    source          text NOT NULL CHECK (source IN ('table', 'file', 'upstream')),
    file            text NOT NULL DEFAULT '' CHECK (length(file) <= 255),
    problem         text NOT NULL DEFAULT '' CHECK (length(problem) <= 600),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_used_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX symbol_table_public_use ON symbol_table_public (last_used_at);
CREATE TRIGGER symbol_table_public_trash AFTER DELETE OR UPDATE OF object_key ON symbol_table_public
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();

-- Caches and ETags of symbolized results contain the sum of a team's generation and the public one.
-- Triggers increase them in each transaction that changes a table.
CREATE TABLE symbol_generation (
    tenant_id  bigint PRIMARY KEY REFERENCES tenant (id) ON DELETE CASCADE,
    generation bigint NOT NULL
);
SELECT protect_tenant_rows('symbol_generation');
CREATE TABLE symbol_generation_public (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    generation bigint NOT NULL
);
INSERT INTO symbol_generation_public (generation) VALUES (1);

CREATE FUNCTION symbol_generation_grow() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    changed_tenant bigint := CASE TG_OP WHEN 'DELETE' THEN OLD.tenant_id ELSE NEW.tenant_id END;
BEGIN
    -- Not when the tenant is being deleted: its row no longer exists then.
    IF EXISTS (SELECT FROM tenant WHERE id = changed_tenant) THEN
        INSERT INTO symbol_generation AS g (tenant_id, generation) VALUES (changed_tenant, 1)
        ON CONFLICT (tenant_id) DO UPDATE SET generation = g.generation + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION symbol_generation_public_grow() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE symbol_generation_public SET generation = generation + 1;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION symbol_generation_grow(), symbol_generation_public_grow() FROM PUBLIC;
CREATE TRIGGER symbol_table_generation AFTER INSERT OR UPDATE OR DELETE ON symbol_table
    FOR EACH ROW EXECUTE FUNCTION symbol_generation_grow();
-- Not for a change of last_used_at, and once for all tables that one statement deletes.
CREATE TRIGGER symbol_table_public_generation
    AFTER INSERT OR DELETE OR UPDATE OF object_key ON symbol_table_public
    FOR EACH STATEMENT EXECUTE FUNCTION symbol_generation_public_grow();

-- ---- debug files ----

-- Debug files and executables that a team uploaded. They are served to debuggers.
CREATE TABLE debug_file (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id       bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    build_id        text NOT NULL CHECK (build_id ~ '^([0-9a-f]{2}){1,128}$'),
    kind            text NOT NULL CHECK (kind IN ('debuginfo', 'executable')),
    -- '': the file is useless, and its bytes were dropped.
    object_key      text NOT NULL CHECK (length(object_key) <= 200),
    bytes           bigint NOT NULL CHECK (bytes >= 0),
    sha256          bytea NOT NULL CHECK (length(sha256) = 32),
    file            text NOT NULL DEFAULT '' CHECK (length(file) <= 255),
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'built', 'failed')),
    reason          text NOT NULL DEFAULT '' CHECK (length(reason) <= 600), -- why it failed
    builder_version integer NOT NULL DEFAULT 0, -- 0: no builder has read it
    -- What the builder found in the file; 0 until then. An executable with DWARF of its own is
    -- served to debuggers that request a debug file which nobody uploaded.
    quality         integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT debug_file_content UNIQUE (tenant_id, build_id, kind, sha256)
);
-- The oldest failed files of a team, of which a limited number is kept.
CREATE INDEX debug_file_failed ON debug_file (tenant_id, id) WHERE state = 'failed';
SELECT protect_tenant_rows('debug_file');
CREATE TRIGGER debug_file_trash AFTER DELETE OR UPDATE OF object_key ON debug_file
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();

-- Binaries for which a result had no table, or only a poor one.
CREATE TABLE symbol_need (
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    build_id    text NOT NULL CHECK (build_id ~ '^([0-9a-f]{2}){1,128}$'),
    file        text NOT NULL DEFAULT '' CHECK (length(file) <= 255),
    first_at    timestamptz NOT NULL DEFAULT now(),
    last_at     timestamptz NOT NULL DEFAULT now(),
    -- Why the last attempt failed.
    reason      text NOT NULL DEFAULT '' CHECK (length(reason) <= 600),
    try_count   integer NOT NULL DEFAULT 0,
    next_try_at timestamptz, -- NULL: no server can be queried
    PRIMARY KEY (tenant_id, build_id)
);
CREATE INDEX symbol_need_due ON symbol_need (next_try_at) WHERE next_try_at IS NOT NULL;
CREATE INDEX symbol_need_last ON symbol_need (last_at);
SELECT protect_tenant_rows('symbol_need');

-- Jobs of all servers; a row is deleted when its job is done. key identifies the work, so that the
-- same work is queued only once.
CREATE TABLE symbol_job (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    kind          text NOT NULL CHECK (kind IN ('build', 'fetch')),
    key           text NOT NULL UNIQUE CHECK (length(key) <= 400),
    build_id      text NOT NULL,
    debug_file_id bigint REFERENCES debug_file (id) ON DELETE CASCADE, -- of 'build'
    created_at    timestamptz NOT NULL DEFAULT now(),
    run_after     timestamptz NOT NULL DEFAULT now(),
    try_count     integer NOT NULL DEFAULT 0,
    -- Each claim of the job increases this number. A server whose lease has ended has an old number
    -- and can no longer finish the job.
    fence         bigint NOT NULL DEFAULT 0,
    leased_until  timestamptz
);
CREATE INDEX symbol_job_of_tenant ON symbol_job (tenant_id, id);
CREATE INDEX symbol_job_of_file ON symbol_job (debug_file_id);
SELECT protect_tenant_rows('symbol_job');

-- ---- debuginfod servers ----

-- Which servers are queried for a team's debug files. A team without a row has 'public'.
CREATE TABLE debuginfo_policy (
    tenant_id  bigint PRIMARY KEY REFERENCES tenant (id) ON DELETE CASCADE,
    mode       text NOT NULL CHECK (mode IN ('public', 'custom', 'off')),
    changed_at timestamptz NOT NULL DEFAULT now()
);
SELECT protect_tenant_rows('debuginfo_policy');

-- The servers of mode 'custom', queried in order of position. auth is a header line with
-- credentials: perfolio_server can write it but not read it; perfolio_jobs, which sends the
-- requests, can.
CREATE TABLE debuginfo_upstream (
    tenant_id bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    url       text NOT NULL CHECK (length(url) <= 2048),
    position  integer NOT NULL,
    auth      text CHECK (length(auth) <= 8192),
    has_auth  boolean NOT NULL GENERATED ALWAYS AS (auth IS NOT NULL) STORED,
    PRIMARY KEY (tenant_id, url)
);
SELECT protect_tenant_rows('debuginfo_upstream');

-- ---- rights ----

GRANT SELECT, INSERT, UPDATE, DELETE ON symbol_table, debug_file, symbol_need, symbol_job
      TO perfolio_server, perfolio_jobs;
GRANT SELECT ON symbol_generation, symbol_generation_public TO perfolio_server, perfolio_jobs;
GRANT SELECT ON symbol_table_public TO perfolio_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON symbol_table_public TO perfolio_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON debuginfo_policy TO perfolio_server;
GRANT SELECT (tenant_id, url, position, has_auth), INSERT, UPDATE, DELETE ON debuginfo_upstream
      TO perfolio_server;
GRANT SELECT ON debuginfo_policy, debuginfo_upstream TO perfolio_jobs;
