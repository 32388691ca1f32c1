-- The short link of a comparison is kept when its base is deleted, until its share is: it is charged to
-- the share, and short_link_find does not return it without the base. When it was deleted with the base,
-- its bytes stayed charged.
ALTER TABLE short_link DROP CONSTRAINT short_link_base_id_fkey;
DROP INDEX short_link_of_base;
CREATE OR REPLACE FUNCTION short_link_drop() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM short_link WHERE share_id = NEW.id;
    RETURN NULL;
END $$;
