-- A block that is left alone for a while because a merge with others would not help can still be
-- claimed for a deletion or for retention.
ALTER TABLE block ADD merge_after timestamptz; -- not merged with others before; NULL: at any time
