-- Shares: a profile with a permalink, its bytes in the object store and its settings here.
--
-- A share is 'live', then 'deleting' (readers get 410, the bytes are still to be removed), then
-- 'gone': a tombstone that keeps only what 410 needs. Rows are never deleted except with their
-- tenant; whatever row goes, a trigger hands its object key to object_trash, and the background
-- work removes the object. An object that no row names is collected by age.

CREATE TABLE share (
    id                text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{22}$'),
    tenant_id         bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    -- Who made it. Without foreign keys: a share outlives the user and the token.
    user_id           bigint,
    token_id          bigint,
    state             text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'deleting', 'gone')),
    gone_reason       text CHECK (gone_reason IN ('deleted', 'expired', 'taken down')),
    title             text NOT NULL DEFAULT '' CHECK (length(title) <= 200),
    description       text NOT NULL DEFAULT '' CHECK (length(description) <= 20000),
    visibility        text NOT NULL CHECK (visibility IN ('public', 'unlisted', 'team', 'password')),
    password_hash     text CHECK ((visibility = 'password') = (password_hash IS NOT NULL) OR state = 'gone'),
    delete_token_hash bytea NOT NULL CHECK (length(delete_token_hash) = 32),
    created_at        timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz,
    -- When set, each view moves expires_at to this long after it.
    idle_expiry_s     bigint CHECK (idle_expiry_s > 0),
    gone_at           timestamptz,
    object_key        text NOT NULL CHECK (object_key <> '' OR state = 'gone'),
    raw_bytes         bigint NOT NULL CHECK (raw_bytes >= 0),
    raw_sha256        bytea NOT NULL CHECK (length(raw_sha256) = 32),
    format            text NOT NULL,
    filename          text NOT NULL DEFAULT '' CHECK (length(filename) <= 255),
    labels            json NOT NULL DEFAULT '{}',
    -- What GET /api/v1/shares/{id} says of the profile, computed once. json and not jsonb: it is
    -- only handed through, and strings of a profile may hold what jsonb refuses.
    summary           json NOT NULL DEFAULT '{}',
    views             bigint NOT NULL DEFAULT 0,
    last_view_at      timestamptz
);
CREATE INDEX share_of_tenant ON share (tenant_id, created_at DESC, id DESC) WHERE state = 'live';
CREATE INDEX share_expiry ON share (expires_at) WHERE state = 'live' AND expires_at IS NOT NULL;
CREATE INDEX share_deleting ON share (id) WHERE state = 'deleting';

-- Uploads in parts: each part is an object of its own until the upload is completed.
CREATE TABLE upload (
    id          text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{22}$'),
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    user_id     bigint,
    token_id    bigint,
    token_hash  bytea NOT NULL CHECK (length(token_hash) = 32),
    size_bytes  bigint NOT NULL CHECK (size_bytes > 0),
    part_bytes  bigint NOT NULL CHECK (part_bytes > 0),
    part_count  bigint NOT NULL CHECK (part_count > 0),
    filename    text NOT NULL DEFAULT '' CHECK (length(filename) <= 255),
    sha256      bytea CHECK (length(sha256) = 32),
    -- While one request completes the upload, others get 409; a crash leaves the time behind.
    completing_until timestamptz,
    -- The share that it became: completing again (an answer got lost) names it.
    share_id    text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL
);
CREATE INDEX upload_expiry ON upload (expires_at);
CREATE INDEX upload_of_tenant ON upload (tenant_id);

CREATE TABLE upload_part (
    upload_id  text NOT NULL REFERENCES upload (id) ON DELETE CASCADE,
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    part       bigint NOT NULL CHECK (part >= 0),
    size_bytes bigint NOT NULL CHECK (size_bytes > 0),
    object_key text NOT NULL,
    PRIMARY KEY (upload_id, part)
);
CREATE INDEX upload_part_of_tenant ON upload_part (tenant_id);

-- What viewers report to the operator.
CREATE TABLE share_report (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    share_id   text NOT NULL REFERENCES share (id) ON DELETE CASCADE,
    reason     text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    address    text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    closed_at  timestamptz
);
CREATE INDEX share_report_open ON share_report (id) WHERE closed_at IS NULL;
CREATE INDEX share_report_of_share ON share_report (share_id);
CREATE INDEX share_report_of_tenant ON share_report (tenant_id);

-- Objects that no row names any more.
CREATE TABLE object_trash (
    object_key text PRIMARY KEY,
    added_at   timestamptz NOT NULL DEFAULT now()
);

-- Keys that must survive a restart and travel with a backup.
CREATE TABLE server_secret (
    name   text PRIMARY KEY,
    secret bytea NOT NULL
);
INSERT INTO server_secret (name, secret)
VALUES ('share cookie', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                               || uuid_send(gen_random_uuid())));

CREATE FUNCTION object_trash_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF OLD.object_key <> '' THEN
        INSERT INTO object_trash (object_key) VALUES (OLD.object_key) ON CONFLICT DO NOTHING;
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER share_trash AFTER DELETE ON share
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();
CREATE TRIGGER upload_part_trash AFTER DELETE OR UPDATE OF object_key ON upload_part
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['share', 'upload', 'upload_part', 'share_report'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant_rows ON %I TO perfolio_server '
            'USING (tenant_id = nullif(current_setting(''app.tenant'', true), '''')::bigint) '
            'WITH CHECK (tenant_id = nullif(current_setting(''app.tenant'', true), '''')::bigint)',
            name);
        EXECUTE format('CREATE POLICY jobs_rows ON %I TO perfolio_jobs USING (true) '
            'WITH CHECK (true)', name);
        EXECUTE format('CREATE POLICY owner_rows ON %I TO perfolio_owner USING (true) '
            'WITH CHECK (true)', name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE ON share TO perfolio_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON upload, upload_part TO perfolio_server;
GRANT SELECT, INSERT ON share_report TO perfolio_server;
GRANT SELECT, UPDATE, DELETE ON share, upload, upload_part, share_report TO perfolio_jobs;
GRANT SELECT, DELETE ON object_trash TO perfolio_jobs;

-- The share of an id, whoever asks: the caller decides from tenant and visibility what may be seen.
-- An expired share is told as 'deleting' from the moment of its expiry.
CREATE FUNCTION share_find(wanted_id text) RETURNS TABLE (
    tenant_id bigint, user_id bigint, token_id bigint, state text, gone_reason text, title text,
    description text, visibility text, password_hash text, delete_token_hash bytea,
    created_ms bigint, expires_ms bigint, idle_expiry_s bigint, object_key text, raw_bytes bigint,
    raw_sha256 bytea, format text, filename text, labels text, summary text, views bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT s.tenant_id, s.user_id, s.token_id,
           CASE WHEN s.state = 'live' AND s.expires_at <= now() THEN 'deleting' ELSE s.state END,
           CASE WHEN s.state = 'live' AND s.expires_at <= now() THEN 'expired'
                ELSE s.gone_reason END,
           s.title, s.description, s.visibility, s.password_hash, s.delete_token_hash,
           (extract(epoch FROM s.created_at) * 1000)::bigint,
           (extract(epoch FROM s.expires_at) * 1000)::bigint, s.idle_expiry_s, s.object_key,
           s.raw_bytes, s.raw_sha256, s.format, s.filename, s.labels::text, s.summary::text, s.views
    FROM share s WHERE s.id = wanted_id
$$;

-- The upload of an id, whoever asks: the caller shows its token or belongs to the tenant.
CREATE FUNCTION upload_find(wanted_id text) RETURNS TABLE (
    tenant_id bigint, user_id bigint, token_id bigint, token_hash bytea, size_bytes bigint,
    part_bytes bigint, part_count bigint, filename text, sha256 bytea, share_id text,
    expires_ms bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT u.tenant_id, u.user_id, u.token_id, u.token_hash, u.size_bytes, u.part_bytes,
           u.part_count, u.filename, u.sha256, u.share_id,
           (extract(epoch FROM u.expires_at) * 1000)::bigint
    FROM upload u WHERE u.id = wanted_id AND u.expires_at > now()
$$;

CREATE FUNCTION server_secret_find(wanted_name text) RETURNS bytea
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT secret FROM server_secret WHERE name = wanted_name
$$;

REVOKE ALL ON FUNCTION share_find(text), upload_find(text), server_secret_find(text),
    object_trash_add() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION share_find(text), upload_find(text), server_secret_find(text)
    TO perfolio_server, perfolio_jobs;
