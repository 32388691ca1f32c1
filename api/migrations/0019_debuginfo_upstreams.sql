-- Which debuginfod servers are asked for a team's debug files (api/DESIGN.md, "Debug files of
-- others"). A team without a row has 'public'.
CREATE TABLE debuginfo_policy (
    tenant_id  bigint PRIMARY KEY REFERENCES tenant (id) ON DELETE CASCADE,
    mode       text NOT NULL CHECK (mode IN ('public', 'custom', 'off')),
    changed_at timestamptz NOT NULL DEFAULT now()
);

-- Of 'custom', asked in order of position. auth is a header line that proves who asks: the server's
-- role writes it and cannot read it; background work, which asks, can.
CREATE TABLE debuginfo_upstream (
    tenant_id bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    url       text NOT NULL CHECK (length(url) <= 2048),
    position  integer NOT NULL,
    auth      text CHECK (length(auth) <= 8192),
    has_auth  boolean NOT NULL GENERATED ALWAYS AS (auth IS NOT NULL) STORED,
    PRIMARY KEY (tenant_id, url)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['debuginfo_policy', 'debuginfo_upstream'] LOOP
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

GRANT SELECT, INSERT, UPDATE, DELETE ON debuginfo_policy TO perfolio_server;
GRANT SELECT (tenant_id, url, position, has_auth), INSERT, UPDATE, DELETE ON debuginfo_upstream
      TO perfolio_server;
GRANT SELECT ON debuginfo_policy, debuginfo_upstream TO perfolio_jobs;
