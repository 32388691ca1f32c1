-- A team deletes profiles as the server's role with its tenant set, as requests do everything else:
-- row-level security, not a WHERE clause, keeps the profiles of others out of reach.
GRANT INSERT (tenant_id, selector, begin_ns, end_ns) ON store_deletion TO perfolio_server;
GRANT UPDATE (deletions, leased_by, leased_until) ON block, segment_tenant TO perfolio_server;
