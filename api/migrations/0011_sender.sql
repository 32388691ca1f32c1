-- Who sends continuous profiles to a team: written every few seconds by the servers (api/senders.h),
-- for people to look at; nothing depends on it.
CREATE TABLE sender (
    tenant_id     bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    key           bytea NOT NULL CHECK (length(key) = 16), -- hash of the next six
    token_id      bigint, -- no foreign key: what it sent stays when it goes
    user_id       bigint,
    service       text NOT NULL,
    agent         text NOT NULL,
    protocol      text NOT NULL,
    address       text NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    batches       bigint NOT NULL,
    profiles      bigint NOT NULL,
    samples       bigint NOT NULL,
    errors        bigint NOT NULL,
    last_error    text,
    last_error_at timestamptz,
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX sender_seen ON sender (tenant_id, last_seen_at DESC);

ALTER TABLE sender ENABLE ROW LEVEL SECURITY;
ALTER TABLE sender FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON sender TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON sender TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON sender TO perfolio_owner USING (true) WITH CHECK (true);
GRANT SELECT ON sender TO perfolio_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON sender TO perfolio_jobs;
