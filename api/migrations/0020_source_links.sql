-- Where a team's source code can be read (api/source_links.h): which files of which binaries lead
-- to which pages of a repository.
CREATE TABLE source_link (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    path_prefix text NOT NULL DEFAULT '' CHECK (length(path_prefix) <= 1024),
    build_id    text NOT NULL DEFAULT '' CHECK (length(build_id) <= 256), -- with * and ?; '': any
    label       text NOT NULL DEFAULT '' CHECK (length(label) <= 1024),   -- key=value; '': any
    url         text NOT NULL CHECK (length(url) <= 2048 AND url LIKE 'https://%'),
    revision    text NOT NULL DEFAULT '' CHECK (length(revision) <= 256),
    audience    text NOT NULL DEFAULT 'team' CHECK (audience IN ('team', 'everyone')),
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX source_link_of_tenant ON source_link (tenant_id, id);

ALTER TABLE source_link ENABLE ROW LEVEL SECURITY;
ALTER TABLE source_link FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON source_link TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON source_link TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON source_link TO perfolio_owner USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, DELETE ON source_link TO perfolio_server;
GRANT SELECT, DELETE ON source_link TO perfolio_jobs;
