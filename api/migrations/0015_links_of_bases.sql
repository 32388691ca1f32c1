-- The short link of a comparison is kept when its base is deleted, until its share is: it is
-- charged to the share, and short_link_find does not return it without the base. When it was
-- deleted with the base, its bytes stayed charged.
ALTER TABLE short_link DROP CONSTRAINT short_link_base_id_fkey;
DROP INDEX short_link_of_base;
CREATE OR REPLACE FUNCTION short_link_drop() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM short_link WHERE share_id = NEW.id;
    RETURN NULL;
END $$;

-- Refuses a link to a share that is not live, and locks the share until the link is committed, so
-- that a later deletion of it finds the link. The base is not locked: links of A..B and B..A would
-- wait for each other. The tenant is locked before the share, which is the order that a deletion
-- uses.
CREATE OR REPLACE FUNCTION short_link_check() RETURNS trigger
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
