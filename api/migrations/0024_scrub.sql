-- The background scrub (api/scrub.h) reads all stored objects within a period. One row holds its
-- progress, so that it goes on after a restart, on whichever server leases it.
CREATE TABLE scrub (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    is_paused       boolean NOT NULL DEFAULT false,
    next_pass_at    timestamptz NOT NULL DEFAULT now() + interval '1 hour',
    -- The pass that runs; NULL: none does. kind and cursor: what has been read (api/object_verify.h).
    started_at      timestamptz,
    kind            text NOT NULL DEFAULT '',
    cursor          text NOT NULL DEFAULT '',
    objects         bigint NOT NULL DEFAULT 0,
    bytes           bigint NOT NULL DEFAULT 0,
    total_bytes     bigint NOT NULL DEFAULT 0, -- of all objects, when the pass began
    -- The last complete pass.
    last_started_at timestamptz,
    last_ended_at   timestamptz,
    last_objects    bigint NOT NULL DEFAULT 0,
    last_bytes      bigint NOT NULL DEFAULT 0,
    last_problems   bigint NOT NULL DEFAULT 0,
    leased_by       text NOT NULL DEFAULT '',
    leased_until    timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO scrub DEFAULT VALUES;

-- Objects that the scrub found damaged or lost. A complete pass removes those it did not find again.
-- tenant has no foreign key: a row outlives its tenant until the next pass.
CREATE TABLE object_problem (
    object_key text PRIMARY KEY,
    kind       text NOT NULL,
    problem    text NOT NULL CHECK (problem IN ('broken', 'unreadable', 'missing', 'differs')),
    tenant     bigint,
    detail     text NOT NULL,
    found_at   timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX object_problem_found ON object_problem (found_at, object_key);

GRANT SELECT, UPDATE ON scrub TO perfolio_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON object_problem TO perfolio_jobs;
