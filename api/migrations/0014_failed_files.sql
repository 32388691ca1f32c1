-- Finds the oldest failed debug files of a team, of which a limited number is kept.
CREATE INDEX debug_file_failed ON debug_file (tenant_id, id) WHERE state = 'failed';
