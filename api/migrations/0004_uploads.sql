-- Uploads in parts: each part is an object until the upload is completed and becomes a share.

CREATE TABLE upload (
    id               text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{22}$'),
    tenant_id        bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    user_id          bigint,
    token_id         bigint,
    token_hash       bytea NOT NULL CHECK (length(token_hash) = 32),
    -- The client's address of an anonymous upload (IPv6: the /64), for the limit of bytes that an
    -- address may announce. '': the upload is not anonymous.
    address          text NOT NULL DEFAULT '' CHECK (length(address) <= 64),
    size_bytes       bigint NOT NULL CHECK (size_bytes > 0),
    part_bytes       bigint NOT NULL CHECK (part_bytes > 0),
    part_count       bigint NOT NULL CHECK (part_count > 0),
    filename         text NOT NULL DEFAULT '' CHECK (length(filename) <= 255),
    sha256           bytea CHECK (length(sha256) = 32), -- NULL: the client did not send it
    -- Until then a request is completing the upload, and others get 409. A time, not a flag: it
    -- ends by itself when the server crashes.
    completing_until timestamptz,
    -- What it became; a repeated request to complete it returns the same share.
    share_id         text,
    -- The bytes of the debug information that was made of it, set before the parts are deleted;
    -- NULL: none was made. The parts of a completed upload count for the quota only as far as the
    -- result is smaller: the upload was charged when it was announced, and the result is charged in
    -- its place (object_trash_add in 0002_objects.sql).
    result_bytes     bigint CHECK (result_bytes >= 0),
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz NOT NULL
);
CREATE INDEX upload_expiry ON upload (expires_at);
CREATE INDEX upload_of_tenant ON upload (tenant_id);
CREATE INDEX upload_of_address ON upload (address) WHERE address <> '';
SELECT protect_tenant_rows('upload');

CREATE TABLE upload_part (
    upload_id  text NOT NULL REFERENCES upload (id) ON DELETE CASCADE,
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    part       bigint NOT NULL CHECK (part >= 0),
    size_bytes bigint NOT NULL CHECK (size_bytes > 0),
    object_key text NOT NULL,
    -- Compared when the parts are joined and by the background scrub.
    sha256     bytea NOT NULL CHECK (length(sha256) = 32),
    PRIMARY KEY (upload_id, part)
);
CREATE INDEX upload_part_of_tenant ON upload_part (tenant_id);
SELECT protect_tenant_rows('upload_part');
CREATE TRIGGER upload_part_trash AFTER DELETE OR UPDATE OF object_key ON upload_part
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();

GRANT SELECT, INSERT, UPDATE, DELETE ON upload, upload_part TO perfolio_server;
GRANT SELECT, UPDATE, DELETE ON upload, upload_part TO perfolio_jobs;

-- The upload with an id, of any tenant. The caller checks the upload's token or the tenant.
CREATE FUNCTION upload_find(wanted_id text) RETURNS TABLE (
    tenant_id bigint, user_id bigint, token_id bigint, token_hash bytea, size_bytes bigint,
    part_bytes bigint, part_count bigint, filename text, sha256 bytea, share_id text,
    expires_ms bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT u.tenant_id, u.user_id, u.token_id, u.token_hash, u.size_bytes, u.part_bytes,
           u.part_count, u.filename, u.sha256, u.share_id, unix_ms(u.expires_at)
    FROM upload u WHERE u.id = wanted_id AND u.expires_at > now()
$$;
REVOKE ALL ON FUNCTION upload_find(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION upload_find(text) TO perfolio_server, perfolio_jobs;
