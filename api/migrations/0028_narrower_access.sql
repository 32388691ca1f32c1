-- Ids of short links have 128 bits; those of 56 bits that exist keep working.
ALTER TABLE short_link DROP CONSTRAINT short_link_id_check,
    ADD CONSTRAINT short_link_id_check CHECK (id ~ '^([0-9A-Za-z]{10}|[0-9A-Za-z]{22})$');

-- Row-level security decides whose name it finds: one of the tenant that the caller works for.
CREATE OR REPLACE FUNCTION app_user_shown_name(wanted_id bigint) RETURNS text
    LANGUAGE sql STABLE SECURITY INVOKER SET search_path = public, pg_temp AS $$
    SELECT left(coalesce(nullif(u.name, ''), split_part(u.email, '@', 1)), 100)
    FROM app_user u WHERE u.id = wanted_id
      AND u.tenant_id = nullif(current_setting('app.tenant', true), '')::bigint
$$;
