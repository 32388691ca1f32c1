-- Wrong passwords typed for an account, shown to the person whose account it is. At most 100 rows per
-- account are kept (api/failed_sign_ins.c), and none for longer than 30 days.
CREATE TABLE failed_sign_in (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    user_id   bigint NOT NULL REFERENCES app_user (id) ON DELETE CASCADE,
    at        timestamptz NOT NULL DEFAULT now(),
    address   text NOT NULL DEFAULT ''
);
CREATE INDEX failed_sign_in_of_user ON failed_sign_in (user_id, id DESC);
CREATE INDEX failed_sign_in_of_tenant ON failed_sign_in (tenant_id);
CREATE INDEX failed_sign_in_at ON failed_sign_in (at);

ALTER TABLE failed_sign_in ENABLE ROW LEVEL SECURITY;
ALTER TABLE failed_sign_in FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON failed_sign_in TO perfolio_server
    USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);
CREATE POLICY jobs_rows ON failed_sign_in TO perfolio_jobs USING (true) WITH CHECK (true);
CREATE POLICY owner_rows ON failed_sign_in TO perfolio_owner USING (true) WITH CHECK (true);
-- UPDATE is for FOR UPDATE alone.
GRANT SELECT, INSERT (tenant_id, user_id, address), UPDATE (address), DELETE ON failed_sign_in
    TO perfolio_server;
GRANT SELECT, UPDATE, DELETE ON failed_sign_in TO perfolio_jobs;

-- When the user had signed in last before this session began; NULL: never.
ALTER TABLE session ADD COLUMN previous_sign_in_at timestamptz;

-- Ends the session of a browser that signs in again, perhaps to an account of another tenant.
CREATE FUNCTION session_end(ended_hash bytea) RETURNS void
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    DELETE FROM session WHERE secret_hash = ended_hash
$$;
REVOKE ALL ON FUNCTION session_end(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION session_end(bytea) TO perfolio_server;
