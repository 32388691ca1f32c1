-- Public symbol tables have a limit of bytes: those that were not used for the longest are deleted.

ALTER TABLE symbol_table_public
    -- The last time that a result used the table, exact to an hour or so.
    ADD last_used_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX symbol_table_public_use ON symbol_table_public (last_used_at);

-- Not for a change of last_used_at, and once for all tables that one statement deletes.
DROP TRIGGER symbol_table_public_generation ON symbol_table_public;
CREATE TRIGGER symbol_table_public_generation
    AFTER INSERT OR DELETE OR UPDATE OF object_key ON symbol_table_public
    FOR EACH STATEMENT EXECUTE FUNCTION symbol_generation_public_grow();
