-- What a file was found to hold when its table was built (lib/symbols/symbol_table_facts.h): an
-- executable with DWARF of its own is served to debuggers that ask for a debug file nobody sent. 0:
-- not known, of files that were built before.
ALTER TABLE debug_file ADD COLUMN quality integer NOT NULL DEFAULT 0;
