-- Short links: /s/<id> stands for the address of a view, which may be kilobytes long.
--
-- A link belongs to the tenant of the share that it shows (of a comparison: what is compared with
-- the base) and goes with it, or with the base. It grants nothing: whoever follows it meets the
-- share's own visibility.

CREATE TABLE short_link (
    id         text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{10}$'),
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    share_id   text NOT NULL REFERENCES share (id) ON DELETE CASCADE,
    base_id    text REFERENCES share (id) ON DELETE CASCADE,
    path       text NOT NULL CHECK (octet_length(path) BETWEEN 25 AND 16384),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX short_link_of_share ON short_link (share_id);
CREATE INDEX short_link_of_base ON short_link (base_id) WHERE base_id IS NOT NULL;
CREATE INDEX short_link_of_tenant ON short_link (tenant_id);

ALTER TABLE short_link ENABLE ROW LEVEL SECURITY;
ALTER TABLE short_link FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON short_link TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON short_link TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON short_link TO perfolio_owner USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON short_link TO perfolio_server;
GRANT SELECT, DELETE ON short_link TO perfolio_jobs;

-- A share's row outlives it as a tombstone, so that the foreign keys alone would keep its links.
CREATE FUNCTION short_link_drop() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM short_link WHERE share_id = NEW.id OR base_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER share_links AFTER UPDATE OF state ON share
    FOR EACH ROW WHEN (OLD.state = 'live' AND NEW.state <> 'live')
    EXECUTE FUNCTION short_link_drop();

-- A link is made only while its shares live, and holds them so until it is committed: whoever
-- deletes one of them afterwards sees it. The tenant is locked first, as whoever deletes one does.
CREATE FUNCTION short_link_check() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    live_count bigint;
BEGIN
    PERFORM FROM tenant WHERE id = NEW.tenant_id FOR KEY SHARE;
    SELECT count(*) INTO live_count FROM (
        SELECT FROM share WHERE id IN (NEW.share_id, NEW.base_id) AND state = 'live'
        ORDER BY id FOR SHARE) AS held;
    IF live_count < (CASE WHEN NEW.base_id <> NEW.share_id THEN 2 ELSE 1 END) THEN
        RAISE foreign_key_violation USING MESSAGE = 'the share is deleted';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER short_link_live BEFORE INSERT ON short_link
    FOR EACH ROW EXECUTE FUNCTION short_link_check();

-- The path of a link, whoever asks; none once a share that it shows has expired.
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
