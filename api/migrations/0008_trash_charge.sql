-- Objects in the trash count for the storage quota of their owner until they are deleted: nothing
-- is deleted while a backup copies the objects, and otherwise a client could fill the disk with
-- parts that it puts again, or with uploads that it deletes.

ALTER TABLE object_trash
    -- The tenant that the bytes count for, which may be deleted meanwhile; 0: public symbol tables;
    -- NULL: nobody.
    ADD tenant bigint,
    ADD bytes  bigint NOT NULL DEFAULT 0;
CREATE INDEX object_trash_of_tenant ON object_trash (tenant) INCLUDE (bytes) WHERE bytes > 0;

CREATE OR REPLACE FUNCTION object_trash_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    owner_id  bigint;
    old_bytes bigint := 0;
BEGIN
    IF OLD.object_key = '' THEN
        RETURN OLD;
    END IF;
    IF TG_TABLE_NAME = 'upload_part' THEN
        owner_id := OLD.tenant_id;
        -- The share that the parts became is charged already, until its own object is deleted.
        IF NOT EXISTS (SELECT FROM upload WHERE id = OLD.upload_id AND share_id IS NOT NULL) THEN
            old_bytes := OLD.size_bytes;
        END IF;
    ELSIF TG_TABLE_NAME IN ('symbol_table', 'debug_file') THEN
        owner_id := OLD.tenant_id;
        old_bytes := OLD.bytes;
    ELSIF TG_TABLE_NAME = 'symbol_table_public' THEN
        owner_id := 0;
        old_bytes := OLD.bytes;
    END IF;
    INSERT INTO object_trash (object_key, tenant, bytes)
    VALUES (OLD.object_key, owner_id, old_bytes) ON CONFLICT DO NOTHING;
    RETURN OLD;
END $$;

-- The bytes in the trash that count for a tenant, or for the public symbol tables. perfolio_server
-- may not read object_trash, which contains the keys of all tenants.
CREATE FUNCTION object_trash_bytes(owner_id bigint) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT coalesce(sum(bytes), 0)::bigint FROM object_trash WHERE tenant = owner_id AND bytes > 0
$$;
REVOKE ALL ON FUNCTION object_trash_bytes(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION object_trash_bytes(bigint) TO perfolio_server, perfolio_jobs;

-- As in 0001_identity.sql, with the bytes in the trash. A transaction that replaces an object gives
-- its bytes back and charges the new ones, so that the check includes the old object.
CREATE OR REPLACE FUNCTION tenant_usage_charge(charged_tenant bigint, delta bigint,
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
    is_far := delta <= small_bytes AND stored + delta <= max_bytes - 2 * margin
              AND pg_try_advisory_xact_lock_shared(lock_key);
    IF NOT is_far THEN
        PERFORM pg_advisory_xact_lock(lock_key);
    END IF;
    -- The process id of the backend selects the slot, so connections rarely wait for the same row.
    INSERT INTO tenant_usage AS u (tenant_id, slot, bytes_stored)
    VALUES (charged_tenant, pg_backend_pid() % 32, delta)
    ON CONFLICT (tenant_id, slot) DO UPDATE SET bytes_stored = u.bytes_stored + delta;
    -- This statement has a new snapshot, which includes what was committed while the locks waited.
    SELECT sum(bytes_stored) + object_trash_bytes(charged_tenant) INTO stored
    FROM tenant_usage WHERE tenant_id = charged_tenant;
    IF is_far AND stored > max_bytes - margin THEN
        RAISE EXCEPTION 'The storage filled up quickly meanwhile; try again'
            USING ERRCODE = 'lock_not_available';
    ELSIF stored > max_bytes THEN
        RAISE EXCEPTION '% of % bytes', stored - delta, max_bytes
            USING ERRCODE = 'configuration_limit_exceeded';
    END IF;
END $$;
