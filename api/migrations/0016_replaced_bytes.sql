-- Finds the blocks and parts of segments of a team that merges replaced and that are still stored.
CREATE INDEX segment_tenant_replaced ON segment_tenant (tenant_id) WHERE is_swapped;
CREATE INDEX block_replaced ON block (tenant_id) WHERE swapped_at IS NOT NULL;
