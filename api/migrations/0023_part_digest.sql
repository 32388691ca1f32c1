-- The SHA-256 of each part of an upload, compared when the parts are joined and by the background
-- scrub. NULL: the part was put by an older server; the digest of the whole upload covers it where
-- the client sent one.
ALTER TABLE upload_part ADD COLUMN sha256 bytea CHECK (length(sha256) = 32);
