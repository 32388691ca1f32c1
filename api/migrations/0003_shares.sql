-- Shares: a profile with a permalink. Its bytes are in the object store, its settings in these
-- tables. Also what belongs to a share: reports of abuse, comments, short links; and the links to
-- source code that pages of shares and queries show.

-- States of a share: 'live'; 'deleting': readers get 410, the object has not been deleted yet;
-- 'gone': a tombstone with the columns that a 410 response needs. Rows are deleted with their
-- tenant, and the oldest tombstones when a tenant has too many (api/share/share_jobs.c).
CREATE TABLE share (
    id                text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{22}$'),
    tenant_id         bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    -- Who created it. No foreign keys: a share remains when the user or the token is deleted.
    user_id           bigint,
    token_id          bigint,
    state             text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'deleting', 'gone')),
    gone_reason       text CHECK (gone_reason IN ('deleted', 'expired', 'taken down')),
    title             text NOT NULL DEFAULT '' CHECK (length(title) <= 200),
    description       text NOT NULL DEFAULT '' CHECK (length(description) <= 20000),
    visibility        text NOT NULL
                      CHECK (visibility IN ('public', 'unlisted', 'team', 'password')),
    password_hash     text,
    delete_token_hash bytea NOT NULL CHECK (length(delete_token_hash) = 32),
    created_at        timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz,
    idle_expiry_s     bigint CHECK (idle_expiry_s > 0), -- a view sets expires_at to this time later
    gone_at           timestamptz,
    object_key        text NOT NULL,
    raw_bytes         bigint NOT NULL CHECK (raw_bytes >= 0),
    raw_sha256        bytea NOT NULL CHECK (length(raw_sha256) = 32),
    format            text NOT NULL,
    filename          text NOT NULL DEFAULT '' CHECK (length(filename) <= 255),
    labels            json NOT NULL DEFAULT '{}',
    -- The description of the profile in GET /api/v1/shares/{id}, computed once. json, not jsonb: it
    -- is returned unchanged, and strings of a profile may contain what jsonb refuses.
    summary           json NOT NULL DEFAULT '{}',
    -- The members of the summary that lists show. A summary may have a megabyte; a list that read
    -- its members from there would parse all of it for each of them.
    list_summary      json NOT NULL DEFAULT '{}',
    -- The bytes of the texts in the row and in the share's comments, which count towards the
    -- tenant's quota as raw_bytes do (api/share/share_charge.h).
    row_bytes         bigint NOT NULL DEFAULT 0 CHECK (row_bytes >= 0),
    views             bigint NOT NULL DEFAULT 0,
    last_view_at      timestamptz,
    last_comment      bigint NOT NULL DEFAULT 0, -- the highest number of a comment so far
    CONSTRAINT share_password CHECK (
        (visibility = 'password') = (password_hash IS NOT NULL) OR state = 'gone'),
    CONSTRAINT share_object CHECK (object_key <> '' OR state = 'gone')
);
CREATE INDEX share_of_tenant ON share (tenant_id, created_at DESC, id DESC) WHERE state = 'live';
CREATE INDEX share_expiry ON share (expires_at) WHERE state = 'live' AND expires_at IS NOT NULL;
CREATE INDEX share_deleting ON share (id) WHERE state = 'deleting';
-- The oldest tombstones of a team, of which a limited number is kept.
CREATE INDEX share_gone ON share (tenant_id, gone_at) WHERE state = 'gone';
-- Sums the bytes of the texts of a team's shares without reading their rows.
CREATE INDEX share_row_bytes ON share (tenant_id) INCLUDE (row_bytes) WHERE state = 'live';
SELECT protect_tenant_rows('share');
GRANT SELECT, INSERT, UPDATE ON share TO perfolio_server;
GRANT SELECT, UPDATE, DELETE ON share TO perfolio_jobs;
CREATE TRIGGER share_trash AFTER DELETE ON share
    FOR EACH ROW EXECUTE FUNCTION object_trash_add();

-- The share with an id, of any tenant. The caller decides by tenant and visibility who may see it.
-- From the moment of its expiry a share is returned as 'deleting'.
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
           unix_ms(s.created_at), unix_ms(s.expires_at), s.idle_expiry_s, s.object_key,
           s.raw_bytes, s.raw_sha256, s.format, s.filename, s.labels::text, s.summary::text, s.views
    FROM share s WHERE s.id = wanted_id
$$;
REVOKE ALL ON FUNCTION share_find(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION share_find(text) TO perfolio_server, perfolio_jobs;

-- Abuse that viewers reported to the operator.
CREATE TABLE abuse_report (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    share_id   text NOT NULL REFERENCES share (id) ON DELETE CASCADE,
    reason     text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    address    text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    closed_at  timestamptz
);
CREATE INDEX abuse_report_open ON abuse_report (id) WHERE closed_at IS NULL;
CREATE INDEX abuse_report_closed ON abuse_report (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX abuse_report_of_share ON abuse_report (share_id);
CREATE INDEX abuse_report_of_tenant ON abuse_report (tenant_id);
SELECT protect_tenant_rows('abuse_report');
GRANT SELECT ON abuse_report TO perfolio_server;
GRANT SELECT, UPDATE, DELETE ON abuse_report TO perfolio_jobs;

-- Adds a report of abuse and returns its id. NULL: the share, or the whole server, has as many open
-- reports as it may have. A function, because a request sees the reports of one team only.
CREATE FUNCTION abuse_report_add(of_tenant bigint, of_share text, its_reason text,
                                 from_address text, max_of_share bigint, max_of_all bigint)
    RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO abuse_report (tenant_id, share_id, reason, address)
    SELECT of_tenant, of_share, its_reason, from_address
    WHERE (SELECT count(*) FROM abuse_report WHERE share_id = of_share AND closed_at IS NULL)
            < max_of_share
      AND (SELECT count(*) FROM (SELECT FROM abuse_report WHERE closed_at IS NULL
            LIMIT max_of_all) AS open_ones) < max_of_all
    RETURNING id
$$;
REVOKE ALL ON FUNCTION abuse_report_add(bigint, text, text, text, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION abuse_report_add(bigint, text, text, text, bigint, bigint)
    TO perfolio_server;

-- ---- comments ----

-- A comment belongs to the share's tenant, whoever wrote it, and is deleted with the share. Readers
-- may belong to another tenant and cannot read the author's account, so the name is copied. Numbers
-- increase per share and are never reused.
CREATE TABLE share_comment (
    share_id     text NOT NULL REFERENCES share (id) ON DELETE CASCADE,
    n            bigint NOT NULL CHECK (n > 0),
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    user_id      bigint NOT NULL, -- no foreign key: a comment remains when its author is deleted
    author       text NOT NULL CHECK (length(author) <= 100),
    text         text NOT NULL CHECK (octet_length(text) BETWEEN 1 AND 8192),
    -- The frame that the comment is about: the hash of its path (web/src/model/tree/path.ts) and
    -- its function. NULL: the whole share.
    pin_hash     text CHECK (pin_hash ~ '^[0-9a-f]{16}$'),
    pin_function text CHECK (octet_length(pin_function) <= 4096),
    -- The parameters of the view that the author saw.
    view         text CHECK (octet_length(view) <= 4096),
    created_at   timestamptz NOT NULL DEFAULT now(),
    edited_at    timestamptz,
    PRIMARY KEY (share_id, n),
    CONSTRAINT share_comment_pin CHECK ((pin_hash IS NULL) = (pin_function IS NULL))
);
CREATE INDEX share_comment_of_tenant ON share_comment (tenant_id);
SELECT protect_tenant_rows('share_comment');
GRANT SELECT, INSERT, UPDATE (text, edited_at), DELETE ON share_comment TO perfolio_server;
GRANT SELECT, DELETE ON share_comment TO perfolio_jobs;

-- The row of a deleted share remains as a tombstone, so the foreign key does not delete its
-- comments.
CREATE FUNCTION share_comment_drop() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM share_comment WHERE share_id = NEW.id;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION share_comment_drop() FROM PUBLIC;
CREATE TRIGGER share_comments AFTER UPDATE OF state ON share
    FOR EACH ROW WHEN (OLD.state = 'live' AND NEW.state <> 'live')
    EXECUTE FUNCTION share_comment_drop();

-- ---- short links ----

-- /s/<id> redirects to the address of a view, which may have several kilobytes. A link belongs to
-- the tenant of the share that it shows (in a comparison: the share that is compared with the base)
-- and is deleted with that share. When the base is deleted, the link is kept, because its bytes are
-- charged to the share, and leads nowhere. It gives no access: the visibility of the share is
-- checked as usual.
CREATE TABLE short_link (
    id         text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{22}$'),
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    share_id   text NOT NULL REFERENCES share (id) ON DELETE CASCADE,
    base_id    text, -- no foreign key: see above
    path       text NOT NULL CHECK (octet_length(path) BETWEEN 25 AND 16384),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX short_link_of_share ON short_link (share_id);
CREATE INDEX short_link_of_tenant ON short_link (tenant_id);
SELECT protect_tenant_rows('short_link');
GRANT SELECT, INSERT ON short_link TO perfolio_server;
GRANT SELECT, DELETE ON short_link TO perfolio_jobs;

-- As share_comment_drop.
CREATE FUNCTION short_link_drop() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM short_link WHERE share_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER share_links AFTER UPDATE OF state ON share
    FOR EACH ROW WHEN (OLD.state = 'live' AND NEW.state <> 'live')
    EXECUTE FUNCTION short_link_drop();

-- Refuses a link to a share that is not live, and locks the share until the link is committed, so
-- that a later deletion of it finds the link. The base is not locked: links of A..B and B..A would
-- wait for each other. The tenant is locked before the share, which is the order that a deletion
-- uses.
CREATE FUNCTION short_link_check() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM tenant WHERE id = NEW.tenant_id FOR KEY SHARE;
    PERFORM FROM share WHERE id = NEW.share_id AND state = 'live' FOR SHARE;
    IF NOT FOUND OR NEW.base_id IS NOT NULL
        AND NOT EXISTS (SELECT FROM share WHERE id = NEW.base_id AND state = 'live') THEN
        RAISE foreign_key_violation USING MESSAGE = 'the share is deleted';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER short_link_live BEFORE INSERT ON short_link
    FOR EACH ROW EXECUTE FUNCTION short_link_check();

-- The path of a link, of any tenant. No row once a share that it shows has expired.
CREATE FUNCTION short_link_find(wanted_id text) RETURNS TABLE (path text, visibility text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT l.path, s.visibility FROM short_link l JOIN share s ON s.id = l.share_id
    LEFT JOIN share b ON b.id = l.base_id
    WHERE l.id = wanted_id
      AND s.state = 'live' AND (s.expires_at IS NULL OR s.expires_at > now())
      AND (l.base_id IS NULL
           OR (b.state = 'live' AND (b.expires_at IS NULL OR b.expires_at > now())))
$$;
REVOKE ALL ON FUNCTION short_link_drop(), short_link_check(), short_link_find(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION short_link_find(text) TO perfolio_server;

-- ---- links to source code ----

-- Rules that turn a file of a profile into the address of a page (api/share/source_links.h).
CREATE TABLE source_link (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    path_prefix text NOT NULL DEFAULT '' CHECK (length(path_prefix) <= 1024),
    build_id    text NOT NULL DEFAULT '' CHECK (length(build_id) <= 256), -- with * and ?; '': any
    label       text NOT NULL DEFAULT '' CHECK (length(label) <= 1024),   -- key=value; '': any
    url         text NOT NULL CHECK (length(url) <= 2048 AND url LIKE 'https://%'),
    revision    text NOT NULL DEFAULT '' CHECK (length(revision) <= 256),
    audience    text NOT NULL DEFAULT 'team' CHECK (audience IN ('team', 'everyone')),
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX source_link_of_tenant ON source_link (tenant_id, id);
SELECT protect_tenant_rows('source_link');
GRANT SELECT, INSERT, DELETE ON source_link TO perfolio_server;
GRANT SELECT, DELETE ON source_link TO perfolio_jobs;
