-- What people say about a share, and where in it they point.
--
-- Comments belong to the share's tenant, whoever wrote them, and go with the share. The author's
-- name is kept as it was, since readers may be of another tenant than the author, whose account
-- row-level security hides; a comment outlives its author. Numbers count up per share and are never
-- used again.

ALTER TABLE share ADD COLUMN last_comment bigint NOT NULL DEFAULT 0;

CREATE TABLE share_comment (
    share_id     text NOT NULL REFERENCES share (id) ON DELETE CASCADE,
    n            bigint NOT NULL CHECK (n > 0),
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    user_id      bigint NOT NULL, -- without a foreign key, as in share
    author       text NOT NULL CHECK (length(author) <= 100),
    text         text NOT NULL CHECK (octet_length(text) BETWEEN 1 AND 8192),
    -- The frame that is meant: the hash of its path (web/src/model/path.ts) and its function.
    pin_hash     text CHECK (pin_hash ~ '^[0-9a-f]{16}$'),
    pin_function text CHECK (octet_length(pin_function) <= 4096),
    -- The view's parameters, so that the reader sees what the writer saw.
    view         text CHECK (octet_length(view) <= 4096),
    created_at   timestamptz NOT NULL DEFAULT now(),
    edited_at    timestamptz,
    PRIMARY KEY (share_id, n),
    CHECK ((pin_hash IS NULL) = (pin_function IS NULL))
);
CREATE INDEX share_comment_of_tenant ON share_comment (tenant_id);

ALTER TABLE share_comment ENABLE ROW LEVEL SECURITY;
ALTER TABLE share_comment FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON share_comment TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON share_comment TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON share_comment TO perfolio_owner USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE (text, edited_at), DELETE ON share_comment TO perfolio_server;
GRANT SELECT, DELETE ON share_comment TO perfolio_jobs;

-- A share's row outlives it as a tombstone, so that the foreign key alone would keep its comments.
CREATE FUNCTION share_comment_drop() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM share_comment WHERE share_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER share_comments AFTER UPDATE OF state ON share
    FOR EACH ROW WHEN (OLD.state = 'live' AND NEW.state <> 'live')
    EXECUTE FUNCTION share_comment_drop();

-- What others see as the name of a user: the own choice, else what stands before the "@".
CREATE FUNCTION app_user_shown_name(wanted_id bigint) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT left(coalesce(nullif(u.name, ''), split_part(u.email, '@', 1)), 100)
    FROM app_user u WHERE u.id = wanted_id
$$;

REVOKE ALL ON FUNCTION share_comment_drop(), app_user_shown_name(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app_user_shown_name(bigint) TO perfolio_server;
