-- Storage quotas hold under parallel uploads, and what one address announces is bounded.

-- Who announced an anonymous upload (IPv6: the /64), so that its open announcements can be summed;
-- '' for all others.
ALTER TABLE upload ADD COLUMN address text NOT NULL DEFAULT '' CHECK (length(address) <= 64);
CREATE INDEX upload_of_address ON upload (address) WHERE address <> '';

-- Adds delta > 0 bytes to what the tenant stores, unless that passes its quota, or default_max where
-- it has none: SQLSTATE 53400, with "<stored> of <quota> bytes" as message. The sum over the slots
-- does not show what other transactions are about to commit. Far from the limit that is harmless:
-- each of the 32 slots has at most one such transaction, and one of small_bytes at most, so that
-- margin covers them all and uploads commit together. Near the limit, and for large ones, the
-- advisory lock makes everybody wait for the commits of everybody, and the sum is exact. What is
-- given back needs no check.
CREATE FUNCTION tenant_usage_charge(charged_tenant bigint, delta bigint, default_max bigint)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = public, pg_temp AS $$
DECLARE
    small_bytes CONSTANT bigint := 8 << 20;
    margin      CONSTANT bigint := 32 * small_bytes;
    lock_key    CONSTANT bigint := hashtextextended('tenant_usage', charged_tenant);
    max_bytes   bigint;
    stored      bigint;
    is_far      boolean;
BEGIN
    SELECT coalesce(max_bytes_stored, default_max) INTO max_bytes
    FROM tenant WHERE id = charged_tenant;
    SELECT coalesce(sum(bytes_stored), 0) INTO stored
    FROM tenant_usage WHERE tenant_id = charged_tenant;
    is_far := delta <= small_bytes AND stored + delta <= max_bytes - 2 * margin
              AND pg_try_advisory_xact_lock_shared(lock_key);
    IF NOT is_far THEN
        PERFORM pg_advisory_xact_lock(lock_key);
    END IF;
    -- The backend's process id spreads a tenant's uploads over rows: connections meet rarely.
    INSERT INTO tenant_usage AS u (tenant_id, slot, bytes_stored)
    VALUES (charged_tenant, pg_backend_pid() % 32, delta)
    ON CONFLICT (tenant_id, slot) DO UPDATE SET bytes_stored = u.bytes_stored + delta;
    -- A new snapshot, after whatever the locks waited for.
    SELECT sum(bytes_stored) INTO stored FROM tenant_usage WHERE tenant_id = charged_tenant;
    IF is_far AND stored > max_bytes - margin THEN
        RAISE EXCEPTION 'The storage filled up quickly meanwhile; try again'
            USING ERRCODE = 'lock_not_available';
    ELSIF stored > max_bytes THEN
        RAISE EXCEPTION '% of % bytes', stored - delta, max_bytes
            USING ERRCODE = 'configuration_limit_exceeded';
    END IF;
END $$;
REVOKE ALL ON FUNCTION tenant_usage_charge(bigint, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenant_usage_charge(bigint, bigint, bigint) TO perfolio_server;
