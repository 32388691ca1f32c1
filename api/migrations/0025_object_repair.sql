-- Is the object known to be damaged or lost? A debug file or symbol table that is uploaded again
-- then replaces it, instead of being dropped as a copy of what is stored already. The server's role
-- may not read object_problem, which holds the keys of all tenants.
CREATE FUNCTION object_is_damaged(key text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT EXISTS (SELECT FROM object_problem WHERE object_key = key)
$$;
REVOKE EXECUTE ON FUNCTION object_is_damaged(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION object_is_damaged(text) TO perfolio_server, perfolio_jobs;
