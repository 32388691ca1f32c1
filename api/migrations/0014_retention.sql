-- How long continuous profiles of a selector are kept (store/DESIGN.md). Of a team's rules the first
-- that finds a series counts, in order of position; what none finds is kept as
-- tenant.profile_retention_s says.
CREATE TABLE retention_rule (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    position   integer NOT NULL,
    selector   text NOT NULL CHECK (length(selector) <= 8192),
    keep_s     bigint NOT NULL CHECK (keep_s >= 0), -- by their begin; 0: for ever
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX retention_rule_order ON retention_rule (tenant_id, position, id);
CREATE UNIQUE INDEX retention_rule_selector ON retention_rule (tenant_id, md5(selector));

-- Which rules the block was looked at with, and when (ns since 1970) the next of them is due on all
-- of some series in it; NULL: never.
ALTER TABLE block ADD COLUMN retention_key bigint NOT NULL DEFAULT 0;
ALTER TABLE block ADD COLUMN retention_due_ns bigint;

-- The longest that anything of the team's can be kept; 0: for ever. default_s is of what no rule finds.
CREATE FUNCTION retention_longest_s(of_tenant bigint, default_s bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN min(s) = 0 THEN 0 ELSE max(s) END
    FROM (SELECT default_s AS s UNION ALL
          SELECT keep_s FROM retention_rule WHERE tenant_id = of_tenant) AS kept
$$;

-- What tells one set of rules from another.
CREATE FUNCTION retention_key(of_tenant bigint, default_s bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(default_s || coalesce(
        string_agg(E'\n' || keep_s || selector, '' ORDER BY position, id), ''), 0)
    FROM retention_rule WHERE tenant_id = of_tenant
$$;

ALTER TABLE retention_rule ENABLE ROW LEVEL SECURITY;
ALTER TABLE retention_rule FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON retention_rule TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON retention_rule TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON retention_rule TO perfolio_owner USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON retention_rule TO perfolio_server, perfolio_jobs;
