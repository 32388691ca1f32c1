-- Which labels of samples make series of a team's own (api/sample_labels.h), with commas between
-- them; NULL: those of the server's setting. The team's owners say so themselves.
ALTER TABLE tenant ADD COLUMN sample_labels text CHECK (length(sample_labels) < 512);
GRANT UPDATE (sample_labels) ON tenant TO perfolio_server;
