-- Objects: files in the object store that these tables name, their deletion and verification, and
-- secrets of the server. None of these tables belongs to a tenant.

-- The object store that belongs to this database (api/ops/storage_identity.h). At most one row.
CREATE TABLE object_folder (
    id           text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{22}$'),
    is_confirmed boolean NOT NULL DEFAULT false, -- the store is known to contain the same id
    is_only      boolean NOT NULL DEFAULT true UNIQUE CHECK (is_only)
);

-- Objects that no row names any more. Background jobs delete them, and retry an object that cannot
-- be deleted after all others.
CREATE TABLE object_trash (
    object_key text PRIMARY KEY,
    added_at   timestamptz NOT NULL DEFAULT now(),
    tried_at   timestamptz, -- the last attempt; NULL: none
    -- Rows of store_deletion that wait for this object: a deletion is done when the bytes are gone.
    deletions  bigint[] NOT NULL DEFAULT '{}',
    -- The bytes count for the storage quota of this tenant, which may be deleted meanwhile; 0:
    -- public symbol tables; NULL: nobody. Nothing is deleted while a backup copies the objects, and
    -- a client could otherwise fill the disk with parts that it puts again, or with uploads that it
    -- deletes.
    tenant     bigint,
    bytes      bigint NOT NULL DEFAULT 0
);
CREATE INDEX object_trash_of_tenant ON object_trash (tenant) INCLUDE (bytes) WHERE bytes > 0;
CREATE INDEX object_trash_turn ON object_trash (tried_at NULLS FIRST, added_at);
CREATE INDEX object_trash_deleting ON object_trash (object_key) WHERE deletions <> '{}';
GRANT SELECT, INSERT, UPDATE (tried_at), DELETE ON object_trash TO perfolio_jobs;

-- For triggers on tables with a column object_key: moves the key of a deleted or replaced row to
-- object_trash, whoever deletes the row.
CREATE FUNCTION object_trash_add() RETURNS trigger
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
REVOKE ALL ON FUNCTION object_trash_add() FROM PUBLIC;

-- The bytes in the trash that count for a tenant, or for the public symbol tables. perfolio_server
-- may not read object_trash, which contains the keys of all tenants.
CREATE FUNCTION object_trash_bytes(owner_id bigint) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT coalesce(sum(bytes), 0)::bigint FROM object_trash WHERE tenant = owner_id AND bytes > 0
$$;
REVOKE ALL ON FUNCTION object_trash_bytes(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION object_trash_bytes(bigint) TO perfolio_server, perfolio_jobs;

-- The background scrub (api/ops/scrub.h) reads all objects once per period. This row contains its
-- progress, so that any server can continue it after a restart.
CREATE TABLE scrub (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    is_paused       boolean NOT NULL DEFAULT false,
    next_pass_at    timestamptz NOT NULL DEFAULT now() + interval '1 hour',
    -- The current pass. started_at is NULL when there is none. kind and cursor are the position up
    -- to which objects were read (api/ops/object_verify.h).
    started_at      timestamptz,
    kind            text NOT NULL DEFAULT '',
    cursor          text NOT NULL DEFAULT '',
    objects         bigint NOT NULL DEFAULT 0,
    bytes           bigint NOT NULL DEFAULT 0,
    total_bytes     bigint NOT NULL DEFAULT 0, -- of all objects when the pass began
    -- The last complete pass.
    last_started_at timestamptz,
    last_ended_at   timestamptz,
    last_objects    bigint NOT NULL DEFAULT 0,
    last_bytes      bigint NOT NULL DEFAULT 0,
    last_problems   bigint NOT NULL DEFAULT 0,
    leased_by       text NOT NULL DEFAULT '',
    leased_until    timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO scrub DEFAULT VALUES;
GRANT SELECT, UPDATE ON scrub TO perfolio_jobs;

-- Objects that the scrub found damaged or missing. A complete pass removes the rows of objects that
-- it found intact. tenant has no foreign key: the row of a deleted tenant remains until then.
CREATE TABLE object_problem (
    object_key text PRIMARY KEY,
    kind       text NOT NULL,
    problem    text NOT NULL CHECK (problem IN ('broken', 'unreadable', 'missing', 'differs')),
    tenant     bigint,
    detail     text NOT NULL,
    found_at   timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX object_problem_found ON object_problem (found_at, object_key);
GRANT SELECT, INSERT, UPDATE, DELETE ON object_problem TO perfolio_jobs;

-- Whether the scrub found the object damaged or missing. If so, an upload of the same debug file or
-- symbol table replaces the object instead of being ignored as a duplicate. perfolio_server may not
-- read object_problem, which contains the keys of all tenants.
CREATE FUNCTION object_is_damaged(key text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT EXISTS (SELECT FROM object_problem WHERE object_key = key)
$$;
REVOKE ALL ON FUNCTION object_is_damaged(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION object_is_damaged(text) TO perfolio_server, perfolio_jobs;

-- Keys that must survive a restart and are part of a backup.
CREATE TABLE server_secret (
    name   text PRIMARY KEY,
    secret bytea NOT NULL
);
INSERT INTO server_secret (name, secret)
VALUES ('share cookie', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                               || uuid_send(gen_random_uuid())));

CREATE FUNCTION server_secret_find(wanted_name text) RETURNS bytea
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT secret FROM server_secret WHERE name = wanted_name
$$;
REVOKE ALL ON FUNCTION server_secret_find(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION server_secret_find(text) TO perfolio_server, perfolio_jobs;
