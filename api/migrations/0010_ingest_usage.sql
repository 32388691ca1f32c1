-- What teams have sent as continuous profiles, by day (UTC). Counted in the transaction that makes
-- profiles exist, so it is exact: what was sent twice counts once.

-- Spread over rows by the server that wrote, so that servers do not wait for each other.
CREATE TABLE ingest_usage (
    tenant_id bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    day       date NOT NULL,
    slot      smallint NOT NULL CHECK (slot BETWEEN 0 AND 15),
    batches   bigint NOT NULL,
    profiles  bigint NOT NULL,
    samples   bigint NOT NULL,
    bytes     bigint NOT NULL, -- as they were first stored
    series    bigint NOT NULL, -- whose first profile of the day came this way
    PRIMARY KEY (tenant_id, day, slot)
);

-- Series that have come on a day, by their hashes (store_series_hash in store/store.h): each counts
-- once. Days that are over are dropped.
CREATE TABLE ingest_series (
    tenant_id bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    day       date NOT NULL,
    series    bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, series)
);
CREATE INDEX ingest_series_day ON ingest_series (day);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['ingest_usage', 'ingest_series'] LOOP
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

GRANT SELECT ON ingest_usage TO perfolio_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON ingest_usage, ingest_series TO perfolio_jobs;
