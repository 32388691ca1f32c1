-- Of a rule's profiles totals can be kept longer than the rest (store/DESIGN.md): for keep_s they
-- are there whole, then until totals_s what each series has in an hour together. NULL: nothing is.
ALTER TABLE retention_rule ADD COLUMN totals_s bigint
    CHECK (totals_s IS NULL OR (keep_s > 0 AND totals_s > keep_s));

CREATE OR REPLACE FUNCTION retention_longest_s(of_tenant bigint, default_s bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN min(s) = 0 THEN 0 ELSE max(s) END
    FROM (SELECT default_s AS s UNION ALL
          SELECT coalesce(totals_s + 3600, keep_s) FROM retention_rule
          WHERE tenant_id = of_tenant) AS kept
$$;

CREATE OR REPLACE FUNCTION retention_key(of_tenant bigint, default_s bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(default_s || coalesce(string_agg(
        E'\n' || keep_s || coalesce('+' || totals_s, '') || ' ' || selector, ''
        ORDER BY position, id), ''), 0)
    FROM retention_rule WHERE tenant_id = of_tenant
$$;
