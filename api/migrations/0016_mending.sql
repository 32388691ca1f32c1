-- Parts that no merge can take (is_broken) are looked at again (store/DESIGN.md): when, and what was
-- wrong with them. Merges that cannot read a part mark it; what is too large cannot be merged alone.
ALTER TABLE block
    ADD COLUMN broken_why   text CHECK (broken_why IN ('unreadable', 'missing', 'too large')),
    ADD COLUMN broken_since timestamptz,
    ADD COLUMN retry_at     timestamptz,
    ADD COLUMN retry_count  integer NOT NULL DEFAULT 0;
ALTER TABLE segment_tenant
    ADD COLUMN broken_why   text CHECK (broken_why IN ('unreadable', 'missing', 'too large')),
    ADD COLUMN broken_since timestamptz,
    ADD COLUMN retry_at     timestamptz,
    ADD COLUMN retry_count  integer NOT NULL DEFAULT 0;
CREATE INDEX block_retry ON block (retry_at) WHERE is_broken AND swapped_at IS NULL;
CREATE INDEX segment_tenant_retry ON segment_tenant (retry_at) WHERE is_broken AND NOT is_swapped;

UPDATE block SET broken_why = 'unreadable', broken_since = now(), retry_at = now() WHERE is_broken;
UPDATE segment_tenant SET broken_why = 'unreadable', broken_since = now(), retry_at = now()
    WHERE is_broken;
