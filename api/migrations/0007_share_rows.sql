-- The members of a share's summary that lists show. A summary may have a megabyte; a list that read its
-- members from there would parse all of it for each of them.
ALTER TABLE share ADD COLUMN list_summary json NOT NULL DEFAULT '{}';
UPDATE share SET list_summary = json_build_object(
    'sample_types', summary->'sample_types', 'default_sample_type', summary->'default_sample_type',
    'sample_count', summary->'sample_count', 'time_ns', summary->'time_ns',
    'duration_ns', summary->'duration_ns')
WHERE state = 'live';
