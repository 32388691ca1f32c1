-- An object that cannot be deleted now is tried again after all others. A deletion of profiles is done
-- when the bytes are gone, so what goes to the trash says which deletions had told it to.
ALTER TABLE object_trash ADD COLUMN tried_at timestamptz,
    ADD COLUMN deletions bigint[] NOT NULL DEFAULT '{}';
CREATE INDEX object_trash_turn ON object_trash (tried_at NULLS FIRST, added_at);
CREATE INDEX object_trash_deleting ON object_trash (object_key) WHERE deletions <> '{}';
GRANT UPDATE (tried_at) ON object_trash TO perfolio_jobs;

CREATE FUNCTION block_trash_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO object_trash (object_key, deletions) VALUES (OLD.object_key, OLD.deletions)
        ON CONFLICT DO NOTHING;
    RETURN OLD;
END $$;
-- Before the row goes, since its parts, which know of deletions, go with it.
CREATE FUNCTION segment_trash_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO object_trash (object_key, deletions) VALUES (OLD.object_key,
        ARRAY (SELECT DISTINCT d FROM segment_tenant s, unnest(s.deletions) AS d
               WHERE s.segment_id = OLD.id))
        ON CONFLICT DO NOTHING;
    RETURN OLD;
END $$;
REVOKE EXECUTE ON FUNCTION block_trash_add(), segment_trash_add() FROM PUBLIC;
DROP TRIGGER segment_trash ON segment;
DROP TRIGGER block_trash ON block;
CREATE TRIGGER segment_trash BEFORE DELETE ON segment
    FOR EACH ROW EXECUTE FUNCTION segment_trash_add();
CREATE TRIGGER block_trash AFTER DELETE ON block
    FOR EACH ROW EXECUTE FUNCTION block_trash_add();

-- When all objects of a writer that has ended were last compared with the catalogue.
ALTER TABLE store_writer ADD COLUMN swept_at timestamptz;
