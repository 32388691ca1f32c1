-- Names and texts of continuous profiles that were longer than the limit string_bytes and were cut
-- (lib/profile/long_string.h): by source, and by team and day.
ALTER TABLE sender ADD COLUMN cut_strings bigint NOT NULL DEFAULT 0;
ALTER TABLE ingest_usage ADD COLUMN cut_strings bigint NOT NULL DEFAULT 0;
