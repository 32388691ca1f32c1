-- A transaction that replaces an object gives back the bytes of the old one and charges the new
-- ones in one step. With two steps it had the row of its slot locked when it waited for the
-- advisory lock, and deadlocked with a transaction that held that lock and waited for the same row.

-- Subtracts replaced_bytes from the bytes that a tenant stores and adds new_bytes (at least 1).
-- Otherwise as tenant_usage_charge in 0001_identity.sql and 0008_trash_charge.sql: the check
-- includes the objects in the trash, so the object that is replaced has to be there.
CREATE FUNCTION tenant_usage_replace(charged_tenant bigint, replaced_bytes bigint, new_bytes bigint,
                                     default_max bigint)
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
    SELECT coalesce(sum(bytes_stored), 0) + object_trash_bytes(charged_tenant) INTO stored
    FROM tenant_usage WHERE tenant_id = charged_tenant;
    is_far := new_bytes <= small_bytes AND stored + new_bytes <= max_bytes - 2 * margin
              AND pg_try_advisory_xact_lock_shared(lock_key);
    IF NOT is_far THEN
        PERFORM pg_advisory_xact_lock(lock_key);
    END IF;
    -- The process id of the backend selects the slot, so connections rarely wait for the same row.
    INSERT INTO tenant_usage AS u (tenant_id, slot, bytes_stored)
    VALUES (charged_tenant, pg_backend_pid() % 32, new_bytes - replaced_bytes)
    ON CONFLICT (tenant_id, slot) DO UPDATE
        SET bytes_stored = u.bytes_stored + excluded.bytes_stored;
    -- This statement has a new snapshot, which includes what was committed while the locks waited.
    SELECT sum(bytes_stored) + object_trash_bytes(charged_tenant) INTO stored
    FROM tenant_usage WHERE tenant_id = charged_tenant;
    IF is_far AND stored > max_bytes - margin THEN
        RAISE EXCEPTION 'The storage filled up quickly meanwhile; try again'
            USING ERRCODE = 'lock_not_available';
    ELSIF stored > max_bytes THEN
        RAISE EXCEPTION '% of % bytes', stored - new_bytes, max_bytes
            USING ERRCODE = 'configuration_limit_exceeded';
    END IF;
END $$;
REVOKE ALL ON FUNCTION tenant_usage_replace(bigint, bigint, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenant_usage_replace(bigint, bigint, bigint, bigint) TO perfolio_server;

CREATE OR REPLACE FUNCTION tenant_usage_charge(charged_tenant bigint, delta bigint,
                                               default_max bigint)
    RETURNS void
    LANGUAGE sql VOLATILE SET search_path = public, pg_temp AS $$
    SELECT tenant_usage_replace(charged_tenant, 0, delta, default_max)
$$;
