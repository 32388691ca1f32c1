-- The parts of a completed upload of debug information count for the quota only as far as its
-- result is smaller: the upload was charged when it was announced, and the result is charged in its
-- place.

-- Set before the parts are deleted; NULL: no debug information was made of the upload.
ALTER TABLE upload ADD result_bytes bigint CHECK (result_bytes >= 0);

-- As in 0008_trash_charge.sql, with result_bytes.
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
        -- The share that the parts became is charged already, until its own object is deleted. All
        -- parts together count for at most the bytes of the upload that the result does not have.
        SELECT CASE WHEN share_id IS NOT NULL THEN 0
                    ELSE div(OLD.size_bytes::numeric * greatest(size_bytes - result_bytes, 0),
                             size_bytes) END
        INTO old_bytes FROM upload
        WHERE id = OLD.upload_id AND (share_id IS NOT NULL OR result_bytes IS NOT NULL);
        old_bytes := coalesce(old_bytes, OLD.size_bytes);
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
