-- Renames the table of the sources of continuous profiles (api/ingest/sources.h) from sender to
-- source. Its policies of row-level security, rights and foreign key belong to the table and
-- remain.
ALTER TABLE sender RENAME TO source;
ALTER TABLE source RENAME CONSTRAINT sender_pkey TO source_pkey;
ALTER TABLE source RENAME CONSTRAINT sender_tenant_id_fkey TO source_tenant_id_fkey;
ALTER TABLE source RENAME CONSTRAINT sender_key_check TO source_key_check;
ALTER INDEX sender_seen RENAME TO source_seen;
