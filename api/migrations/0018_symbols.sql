-- Names for addresses (api/DESIGN.md, "Symbols"): symbol tables, the files that they were built
-- from, binaries whose names were asked for, and jobs. A build id is hexadecimal, of the bytes of
-- the binary's note: for Go's own, of its text.

-- The best table that a team has of a binary.
CREATE TABLE symbol_table (
    tenant_id       bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    build_id        text NOT NULL CHECK (build_id ~ '^([0-9a-f]{2}){1,128}$'),
    object_key      text NOT NULL CHECK (length(object_key) <= 200),
    bytes           bigint NOT NULL CHECK (bytes > 0),
    sha256          bytea NOT NULL CHECK (length(sha256) = 32),
    quality         integer NOT NULL, -- of lib/symbols/symbol_table_facts.h
    quality_rank    integer NOT NULL,
    builder_version integer NOT NULL,
    broken_units    integer NOT NULL,
    functions       bigint NOT NULL,
    source          text NOT NULL CHECK (source IN ('table', 'file', 'upstream')),
    file            text NOT NULL DEFAULT '' CHECK (length(file) <= 255), -- as the uploader called it
    problem         text NOT NULL DEFAULT '' CHECK (length(problem) <= 600), -- what the builder left out
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, build_id)
);

-- The same for everybody: built from what public servers gave.
CREATE TABLE symbol_table_public (LIKE symbol_table INCLUDING ALL);
ALTER TABLE symbol_table_public DROP COLUMN tenant_id;
ALTER TABLE symbol_table_public ADD PRIMARY KEY (build_id);

-- Both grow with each change of what a team may see; their sum tells one state from the next.
CREATE TABLE symbol_generation (
    tenant_id  bigint PRIMARY KEY REFERENCES tenant (id) ON DELETE CASCADE,
    generation bigint NOT NULL
);
CREATE TABLE symbol_generation_public (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    generation bigint NOT NULL
);
INSERT INTO symbol_generation_public (generation) VALUES (1);

-- Debug files and executables as a team sent them, kept for debuggers.
CREATE TABLE debug_file (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id       bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    build_id        text NOT NULL CHECK (build_id ~ '^([0-9a-f]{2}){1,128}$'),
    kind            text NOT NULL CHECK (kind IN ('debuginfo', 'executable')),
    object_key      text NOT NULL CHECK (length(object_key) <= 200), -- '': it was of no use
    bytes           bigint NOT NULL CHECK (bytes >= 0),
    sha256          bytea NOT NULL CHECK (length(sha256) = 32),
    file            text NOT NULL DEFAULT '' CHECK (length(file) <= 255),
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'built', 'failed')),
    reason          text NOT NULL DEFAULT '' CHECK (length(reason) <= 600),
    builder_version integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, build_id, kind, sha256)
);

-- Binaries without (good) names that somebody asked for.
CREATE TABLE symbol_need (
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    build_id     text NOT NULL CHECK (build_id ~ '^([0-9a-f]{2}){1,128}$'),
    file         text NOT NULL DEFAULT '' CHECK (length(file) <= 255),
    first_at     timestamptz NOT NULL DEFAULT now(),
    last_at      timestamptz NOT NULL DEFAULT now(),
    reason       text NOT NULL DEFAULT '' CHECK (length(reason) <= 600), -- why the last try failed
    try_count    integer NOT NULL DEFAULT 0,
    next_try_at  timestamptz, -- NULL: nobody can be asked
    PRIMARY KEY (tenant_id, build_id)
);
CREATE INDEX symbol_need_due ON symbol_need (next_try_at) WHERE next_try_at IS NOT NULL;
CREATE INDEX symbol_need_last ON symbol_need (last_at);

-- Work to do; a row goes when it is done. key: of equal work one is in the table, of all servers.
CREATE TABLE symbol_job (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('build', 'fetch')),
    key          text NOT NULL UNIQUE CHECK (length(key) <= 400),
    build_id     text NOT NULL,
    debug_file_id bigint REFERENCES debug_file (id) ON DELETE CASCADE, -- of 'build'
    created_at   timestamptz NOT NULL DEFAULT now(),
    run_after    timestamptz NOT NULL DEFAULT now(),
    try_count    integer NOT NULL DEFAULT 0,
    -- Whoever has it holds this number: a claim after the lease's end gives it another.
    fence        bigint NOT NULL DEFAULT 0,
    leased_until timestamptz
);
CREATE INDEX symbol_job_of_tenant ON symbol_job (tenant_id, id);
CREATE INDEX symbol_job_of_file ON symbol_job (debug_file_id);

CREATE TRIGGER symbol_table_trash AFTER DELETE OR UPDATE OF object_key ON symbol_table
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();
CREATE TRIGGER symbol_table_public_trash AFTER DELETE OR UPDATE OF object_key ON symbol_table_public
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();
CREATE TRIGGER debug_file_trash AFTER DELETE OR UPDATE OF object_key ON debug_file
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();

-- Generations follow the tables, whoever changes them.
CREATE FUNCTION symbol_generation_grow() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    changed_tenant bigint := CASE TG_OP WHEN 'DELETE' THEN OLD.tenant_id ELSE NEW.tenant_id END;
BEGIN
    -- Not of a tenant that is just being deleted.
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
CREATE TRIGGER symbol_table_public_generation
    AFTER INSERT OR UPDATE OR DELETE ON symbol_table_public
    FOR EACH ROW EXECUTE FUNCTION symbol_generation_public_grow();

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['symbol_table', 'symbol_generation', 'debug_file', 'symbol_need',
                                'symbol_job'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant_rows ON %I TO perfolio_server '
            'USING (tenant_id = nullif(current_setting(''app.tenant'', true), '''')::bigint) '
            'WITH CHECK (tenant_id = nullif(current_setting(''app.tenant'', true), '''')::bigint)',
            name);
        EXECUTE format('CREATE POLICY jobs_rows ON %I TO perfolio_jobs USING (true) '
            'WITH CHECK (true)', name);
        EXECUTE format('CREATE POLICY owner_rows ON %I TO perfolio_owner USING (true) '
            'WITH CHECK (true)', name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON symbol_table, debug_file, symbol_need, symbol_job
      TO perfolio_server, perfolio_jobs;
GRANT SELECT ON symbol_generation, symbol_generation_public, symbol_table_public TO perfolio_server;
GRANT SELECT ON symbol_generation, symbol_generation_public TO perfolio_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON symbol_table_public TO perfolio_jobs;
