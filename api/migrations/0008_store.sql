-- The catalogue of the store (store/DESIGN.md): which segments and blocks exist. What is not in
-- these tables does not exist, whatever objects there are.

-- How long continuous profiles are kept, by their begin; NULL: the server's default. 0: for ever.
ALTER TABLE tenant ADD COLUMN profile_retention_s bigint CHECK (profile_retention_s >= 0);

-- A server while it runs. Objects that it puts carry its number in their keys; once it has ended,
-- those that the catalogue does not know are nobody's. It ends by itself, or when it has not been
-- seen for a minute; whoever has ended commits nothing any more.
CREATE TABLE store_writer (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL CHECK (length(name) <= 300),
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz
);
CREATE INDEX store_writer_running ON store_writer (seen_at) WHERE ended_at IS NULL;

-- What one flush wrote, of any number of tenants. swapped_at: blocks have it now; the object stays
-- until no query that began before can read it.
CREATE TABLE segment (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    writer_id  bigint NOT NULL REFERENCES store_writer (id),
    object_key text NOT NULL UNIQUE CHECK (length(object_key) <= 200),
    bytes      bigint NOT NULL CHECK (bytes > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    swapped_at timestamptz
);
CREATE INDEX segment_waiting ON segment (id) WHERE swapped_at IS NULL;
CREATE INDEX segment_swapped ON segment (swapped_at) WHERE swapped_at IS NOT NULL;

-- One tenant's blocks in a segment: one after the other from first_byte on, each as long as stated.
CREATE TABLE segment_tenant (
    segment_id  bigint NOT NULL REFERENCES segment (id) ON DELETE CASCADE,
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    first_byte  bigint NOT NULL CHECK (first_byte >= 0),
    lengths     bigint[] NOT NULL CHECK (cardinality(lengths) > 0),
    begin_ns    bigint NOT NULL, -- of the first profile
    end_ns      bigint NOT NULL, -- begin of the last profile
    row_count   bigint NOT NULL,
    is_swapped  boolean NOT NULL DEFAULT false, -- blocks have it now
    is_broken   boolean NOT NULL DEFAULT false, -- cannot be merged; the rest of it is still read
    -- A writer that merges it: nobody else does until then, and nobody but it may swap it.
    leased_by    bigint,
    leased_until timestamptz,
    PRIMARY KEY (segment_id, tenant_id)
);
CREATE INDEX segment_tenant_time ON segment_tenant (tenant_id, end_ns) WHERE NOT is_swapped;

CREATE TABLE block (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    writer_id     bigint NOT NULL REFERENCES store_writer (id),
    object_key    text NOT NULL UNIQUE CHECK (length(object_key) <= 200),
    level         smallint NOT NULL CHECK (level BETWEEN 1 AND 9),
    bytes         bigint NOT NULL CHECK (bytes > 0),
    begin_ns      bigint NOT NULL,
    end_ns        bigint NOT NULL,
    row_count     bigint NOT NULL,
    profile_count bigint NOT NULL,
    series_count  integer NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    swapped_at    timestamptz,
    is_broken     boolean NOT NULL DEFAULT false,
    leased_by     bigint,
    leased_until  timestamptz
);
CREATE INDEX block_waiting ON block (level, tenant_id, begin_ns) WHERE swapped_at IS NULL;
CREATE INDEX block_created ON block (created_at) WHERE swapped_at IS NULL;
CREATE INDEX block_time ON block (tenant_id, end_ns) WHERE swapped_at IS NULL;
CREATE INDEX block_swapped ON block (swapped_at) WHERE swapped_at IS NOT NULL;

-- Batches that were taken, so that one sent twice counts once.
CREATE TABLE ingest_batch (
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    batch_id    bytea NOT NULL CHECK (length(batch_id) = 32),
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, batch_id)
);
CREATE INDEX ingest_batch_received ON ingest_batch (received_at);

-- Rows that go hand their object to the background work that deletes it.
CREATE TRIGGER segment_trash AFTER DELETE ON segment
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();
CREATE TRIGGER block_trash AFTER DELETE ON block
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();
GRANT INSERT ON object_trash TO perfolio_jobs;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['segment_tenant', 'block', 'ingest_batch'] LOOP
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

-- Requests read; what writes is one flush of many tenants, and background work.
GRANT SELECT ON segment, segment_tenant, block TO perfolio_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON store_writer, segment, segment_tenant, block, ingest_batch
      TO perfolio_jobs;
