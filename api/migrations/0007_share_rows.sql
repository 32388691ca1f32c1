-- The members of a share's summary that lists show. A summary may have a megabyte; a list that read
-- its members from there would parse all of it for each of them.
ALTER TABLE share ADD COLUMN list_summary json NOT NULL DEFAULT '{}';
UPDATE share SET list_summary = json_build_object(
    'sample_types', summary->'sample_types', 'default_sample_type', summary->'default_sample_type',
    'sample_count', summary->'sample_count', 'time_ns', summary->'time_ns',
    'duration_ns', summary->'duration_ns')
WHERE state = 'live';

-- The bytes of the texts in the row and in the share's comments, which count towards the tenant's
-- quota as raw_bytes do (api/share/share_charge.h). Existing rows are charged here, even to a
-- tenant whose quota they exceed.
ALTER TABLE share ADD COLUMN row_bytes bigint NOT NULL DEFAULT 0 CHECK (row_bytes >= 0);
UPDATE share SET row_bytes = octet_length(title) + octet_length(description)
    + octet_length(filename) + octet_length(labels::text) + octet_length(summary::text)
    + octet_length(list_summary::text)
    + (SELECT coalesce(sum(octet_length(c.author) + octet_length(c.text)
                           + coalesce(octet_length(c.pin_function), 0)
                           + coalesce(octet_length(c.view), 0)), 0)
       FROM share_comment c WHERE c.share_id = share.id)
WHERE state <> 'gone';
INSERT INTO tenant_usage AS u (tenant_id, slot, bytes_stored)
SELECT tenant_id, 0, sum(row_bytes) FROM share WHERE row_bytes > 0 GROUP BY tenant_id
ON CONFLICT (tenant_id, slot) DO UPDATE SET bytes_stored = u.bytes_stored + excluded.bytes_stored;
