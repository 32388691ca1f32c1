-- Until when the profiles of a block last: the latest end of any of them, its begin and its duration.
-- A query of a window so finds profiles that began long before it. NULL: the row is older, and
-- profiles of up to an hour are looked for; `perfoliod store verify` and the scrub fill it in.
ALTER TABLE block ADD COLUMN reach_ns bigint;
ALTER TABLE segment_tenant ADD COLUMN reach_ns bigint;

-- Profiles of up to an hour are found by their begin: these indexes have the few others. Halves do
-- not overflow.
CREATE INDEX block_reach ON block (tenant_id, reach_ns)
    WHERE swapped_at IS NULL AND reach_ns / 2 - end_ns / 2 >= 1800000000000;
CREATE INDEX segment_tenant_reach ON segment_tenant (tenant_id, reach_ns)
    WHERE NOT is_swapped AND reach_ns / 2 - end_ns / 2 >= 1800000000000;
