-- Which block is at each place: the checksum of its footer, which contains a random id. Another
-- block of the same team in its place is damage. NULL: written by a version that did not store it.
ALTER TABLE block ADD footer_crc bigint;
ALTER TABLE segment_tenant ADD footer_crcs bigint[]; -- as many as lengths
