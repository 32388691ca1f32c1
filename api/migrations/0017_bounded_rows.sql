-- Finds the oldest tombstones of a team, of which a limited number is kept.
CREATE INDEX share_gone ON share (tenant_id, gone_at) WHERE state = 'gone';

-- Adds a report of abuse and returns its id. NULL: the share, or the whole server, has as many open
-- reports as it may have. A function, because a request sees the reports of one team only.
CREATE FUNCTION share_report_add(of_tenant bigint, of_share text, its_reason text,
                                 from_address text, max_of_share bigint, max_of_all bigint)
    RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO share_report (tenant_id, share_id, reason, address)
    SELECT of_tenant, of_share, its_reason, from_address
    WHERE (SELECT count(*) FROM share_report WHERE share_id = of_share AND closed_at IS NULL)
            < max_of_share
      AND (SELECT count(*) FROM (SELECT FROM share_report WHERE closed_at IS NULL
            LIMIT max_of_all) AS open_ones) < max_of_all
    RETURNING id
$$;
REVOKE ALL ON FUNCTION share_report_add(bigint, text, text, text, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION share_report_add(bigint, text, text, text, bigint, bigint)
    TO perfolio_server;
REVOKE INSERT ON share_report FROM perfolio_server;
CREATE INDEX share_report_closed ON share_report (closed_at) WHERE closed_at IS NOT NULL;
