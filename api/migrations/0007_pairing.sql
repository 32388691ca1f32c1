-- Which folder of objects goes with this database; see api/pairing.h. At most one row.

CREATE TABLE object_folder (
    id           text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{22}$'),
    is_confirmed boolean NOT NULL DEFAULT false, -- the folder is known to hold the id
    is_only      boolean NOT NULL DEFAULT true UNIQUE CHECK (is_only)
);
