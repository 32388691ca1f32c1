-- What a request with an Idempotency-Key made, so that sending it again gives the same answer.
--
-- Rows are written in the transaction that makes the share or the upload and are kept for a day.
-- Keys are stored as SHA-256, of anonymous requests together with their address.

CREATE TABLE idempotency (
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    key_hash     bytea NOT NULL CHECK (length(key_hash) = 32),
    request_hash bytea NOT NULL CHECK (length(request_hash) = 32), -- path, query and body
    made_id      text NOT NULL, -- of the share or the upload, as the path says
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, key_hash)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

ALTER TABLE idempotency ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON idempotency TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON idempotency TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON idempotency TO perfolio_owner USING (true) WITH CHECK (true);

GRANT SELECT, INSERT ON idempotency TO perfolio_server;
GRANT SELECT, DELETE ON idempotency TO perfolio_jobs;
