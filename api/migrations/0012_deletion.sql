-- What teams have deleted of their continuous profiles (store/DESIGN.md). A deletion is of what was
-- stored when it was committed: questions read none of it from then on, and blocks that hold some
-- are written anew without it.
CREATE TABLE store_deletion (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    selector     text NOT NULL CHECK (length(selector) <= 8192),
    begin_ns     bigint NOT NULL, -- profiles that begin then and later …
    end_ns       bigint NOT NULL, -- … and before
    requested_at timestamptz NOT NULL DEFAULT now(),
    done_at      timestamptz, -- no object has any of it
    CHECK (begin_ns < end_ns)
);
CREATE INDEX store_deletion_tenant ON store_deletion (tenant_id, id);
CREATE INDEX store_deletion_open ON store_deletion (id) WHERE done_at IS NULL;

-- Deletions that may be of profiles in it. They stay with what was swapped until it is gone.
ALTER TABLE block ADD COLUMN deletions bigint[] NOT NULL DEFAULT '{}';
ALTER TABLE segment_tenant ADD COLUMN deletions bigint[] NOT NULL DEFAULT '{}';
CREATE INDEX block_deleting ON block (id) WHERE deletions <> '{}';
CREATE INDEX segment_tenant_deleting ON segment_tenant (segment_id) WHERE deletions <> '{}';

ALTER TABLE store_deletion ENABLE ROW LEVEL SECURITY;
ALTER TABLE store_deletion FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON store_deletion TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON store_deletion TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON store_deletion TO perfolio_owner USING (true) WITH CHECK (true);
GRANT SELECT ON store_deletion TO perfolio_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON store_deletion TO perfolio_jobs;
