-- Continuous profiles: the catalogue of the store (store/catalogue), deletions, retention rules,
-- and what teams and their sources have sent.
--
-- The catalogue decides which profiles exist: an object that no row names does not exist for
-- queries.

-- A running server. The keys of the objects that it writes contain its number; after it has ended,
-- those that no row names are deleted. It ends when it stops, or when it was not seen for a minute.
-- A writer that has ended can no longer commit.
CREATE TABLE store_writer (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL CHECK (length(name) <= 300),
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    swept_at   timestamptz -- when its objects were last compared with the catalogue, after it ended
);
CREATE INDEX store_writer_running ON store_writer (seen_at) WHERE ended_at IS NULL;

-- ---- segments and blocks ----

-- The object that one flush wrote, with profiles of any number of tenants.
CREATE TABLE segment (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    writer_id  bigint NOT NULL REFERENCES store_writer (id),
    object_key text NOT NULL UNIQUE CHECK (length(object_key) <= 200),
    bytes      bigint NOT NULL CHECK (bytes > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When blocks had replaced all its parts. The object remains until no query that began before
    -- can read it.
    swapped_at timestamptz
);
CREATE INDEX segment_waiting ON segment (id) WHERE swapped_at IS NULL;
CREATE INDEX segment_swapped ON segment (swapped_at) WHERE swapped_at IS NOT NULL;

-- The part of a segment that belongs to one tenant: blocks that follow each other from first_byte
-- on, with these lengths.
CREATE TABLE segment_tenant (
    segment_id   bigint NOT NULL REFERENCES segment (id) ON DELETE CASCADE,
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    first_byte   bigint NOT NULL CHECK (first_byte >= 0),
    lengths      bigint[] NOT NULL CHECK (cardinality(lengths) > 0),
    footer_crcs  bigint[] NOT NULL, -- of the blocks, see block.footer_crc
    begin_ns     bigint NOT NULL, -- start of the first profile
    end_ns       bigint NOT NULL, -- start of the last profile
    reach_ns     bigint NOT NULL, -- the latest end of a profile: its start and its duration
    row_count    bigint NOT NULL,
    is_swapped   boolean NOT NULL DEFAULT false, -- a block has replaced it
    deletions    bigint[] NOT NULL DEFAULT '{}', -- see block.deletions
    -- As the columns of block with the same names.
    leased_by    bigint,
    leased_until timestamptz,
    is_broken    boolean NOT NULL DEFAULT false,
    broken_why   text CHECK (broken_why IN ('unreadable', 'missing', 'too large')),
    broken_since timestamptz,
    retry_at     timestamptz,
    retry_count  integer NOT NULL DEFAULT 0,
    PRIMARY KEY (segment_id, tenant_id)
);
CREATE INDEX segment_tenant_time ON segment_tenant (tenant_id, end_ns) WHERE NOT is_swapped;
CREATE INDEX segment_tenant_deleting ON segment_tenant (segment_id) WHERE deletions <> '{}';
-- What merges replaced and what is still stored, by team.
CREATE INDEX segment_tenant_replaced ON segment_tenant (tenant_id) WHERE is_swapped;
CREATE INDEX segment_tenant_retry ON segment_tenant (retry_at) WHERE is_broken AND NOT is_swapped;
SELECT protect_tenant_rows('segment_tenant');

-- An object of one tenant that compaction made of segments or of blocks.
CREATE TABLE block (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id        bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    writer_id        bigint NOT NULL REFERENCES store_writer (id),
    object_key       text NOT NULL UNIQUE CHECK (length(object_key) <= 200),
    level            smallint NOT NULL CHECK (level BETWEEN 1 AND 9),
    bytes            bigint NOT NULL CHECK (bytes > 0),
    -- The checksum of its footer, which contains a random id: another block of the same team in its
    -- place is damage.
    footer_crc       bigint NOT NULL,
    begin_ns         bigint NOT NULL, -- start of the first profile
    end_ns           bigint NOT NULL, -- start of the last profile
    reach_ns         bigint NOT NULL, -- the latest end of a profile: its start and its duration
    row_count        bigint NOT NULL,
    profile_count    bigint NOT NULL,
    series_count     integer NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    swapped_at       timestamptz, -- when another block replaced it; see segment.swapped_at
    -- Rows of store_deletion that may match profiles in it. They remain after the block is
    -- replaced, until its object is gone.
    deletions        bigint[] NOT NULL DEFAULT '{}',
    -- The set of retention rules (the function retention_key) that the block was last compared
    -- with, and when, in ns since 1970, the next of them expires a whole series of it. NULL: never.
    retention_key    bigint NOT NULL DEFAULT 0,
    retention_due_ns bigint,
    -- The writer that merges it. Until leased_until no other writer does, and only this one may
    -- replace it.
    leased_by        bigint,
    leased_until     timestamptz,
    -- Not merged with others before, because that would not help now; a deletion or retention still
    -- claims it. NULL: at any time.
    merge_after      timestamptz,
    -- No merge can read it, or it is too large to be merged; why, since when, when the next attempt
    -- is due, and after how many. Queries still read what is readable.
    is_broken        boolean NOT NULL DEFAULT false,
    broken_why       text CHECK (broken_why IN ('unreadable', 'missing', 'too large')),
    broken_since     timestamptz,
    retry_at         timestamptz,
    retry_count      integer NOT NULL DEFAULT 0
);
CREATE INDEX block_waiting ON block (level, tenant_id, begin_ns) WHERE swapped_at IS NULL;
CREATE INDEX block_created ON block (created_at) WHERE swapped_at IS NULL;
CREATE INDEX block_time ON block (tenant_id, end_ns) WHERE swapped_at IS NULL;
CREATE INDEX block_swapped ON block (swapped_at) WHERE swapped_at IS NOT NULL;
CREATE INDEX block_replaced ON block (tenant_id) WHERE swapped_at IS NOT NULL;
CREATE INDEX block_deleting ON block (id) WHERE deletions <> '{}';
CREATE INDEX block_retry ON block (retry_at) WHERE is_broken AND swapped_at IS NULL;
SELECT protect_tenant_rows('block');

-- A query finds profiles of up to an hour by their start (block_time). These indexes contain the
-- few parts with longer ones. The halves avoid an overflow of the difference.
CREATE INDEX block_reach ON block (tenant_id, reach_ns)
    WHERE swapped_at IS NULL AND reach_ns / 2 - end_ns / 2 >= 1800000000000;
CREATE INDEX segment_tenant_reach ON segment_tenant (tenant_id, reach_ns)
    WHERE NOT is_swapped AND reach_ns / 2 - end_ns / 2 >= 1800000000000;

-- Move the object of a deleted row to object_trash, with the deletions that wait for it.
CREATE FUNCTION block_trash_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO object_trash (object_key, deletions) VALUES (OLD.object_key, OLD.deletions)
        ON CONFLICT DO NOTHING;
    RETURN OLD;
END $$;
CREATE FUNCTION segment_trash_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO object_trash (object_key, deletions) VALUES (OLD.object_key,
        ARRAY (SELECT DISTINCT d FROM segment_tenant s, unnest(s.deletions) AS d
               WHERE s.segment_id = OLD.id))
        ON CONFLICT DO NOTHING;
    RETURN OLD;
END $$;
REVOKE ALL ON FUNCTION block_trash_add(), segment_trash_add() FROM PUBLIC;
CREATE TRIGGER block_trash AFTER DELETE ON block
    FOR EACH ROW EXECUTE FUNCTION block_trash_add();
-- BEFORE: the deletions are columns of segment_tenant, whose rows are deleted with the segment.
CREATE TRIGGER segment_trash BEFORE DELETE ON segment
    FOR EACH ROW EXECUTE FUNCTION segment_trash_add();

-- ---- deletions ----

-- Profiles that a team deleted. A deletion applies to the profiles that were stored when it was
-- committed: queries skip them from then on, and blocks that contain some of them are rewritten.
CREATE TABLE store_deletion (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    selector     text NOT NULL CHECK (length(selector) <= 8192),
    begin_ns     bigint NOT NULL, -- profiles that begin at begin_ns or later, …
    end_ns       bigint NOT NULL, -- … and before end_ns
    requested_at timestamptz NOT NULL DEFAULT now(),
    done_at      timestamptz, -- no object contains any of the profiles since then
    CONSTRAINT store_deletion_window CHECK (begin_ns < end_ns)
);
CREATE INDEX store_deletion_tenant ON store_deletion (tenant_id, id);
CREATE INDEX store_deletion_open ON store_deletion (id) WHERE done_at IS NULL;
SELECT protect_tenant_rows('store_deletion');

-- ---- retention ----

-- How long profiles are kept. The first rule of a team, by position, whose selector matches a
-- series applies to it; tenant.profile_retention_s applies to all other series.
CREATE TABLE retention_rule (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    position   integer NOT NULL,
    selector   text NOT NULL CHECK (length(selector) <= 8192),
    keep_s     bigint NOT NULL CHECK (keep_s >= 0), -- after their start; 0: for ever
    -- After keep_s only the sums of each series and hour remain, until totals_s. NULL: nothing
    -- remains.
    totals_s   bigint,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT retention_rule_totals CHECK (totals_s IS NULL OR (keep_s > 0 AND totals_s > keep_s))
);
CREATE INDEX retention_rule_order ON retention_rule (tenant_id, position, id);
CREATE UNIQUE INDEX retention_rule_selector ON retention_rule (tenant_id, md5(selector));
SELECT protect_tenant_rows('retention_rule');

-- The longest time that anything of the team can be kept; 0: for ever. default_s applies to series
-- that no rule matches. Totals are kept until the end of their hour.
CREATE FUNCTION retention_longest_s(of_tenant bigint, default_s bigint) RETURNS bigint
    LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN min(s) = 0 THEN 0 ELSE max(s) END
    FROM (SELECT default_s AS s UNION ALL
          SELECT coalesce(totals_s + 3600, keep_s) FROM retention_rule
          WHERE tenant_id = of_tenant) AS kept
$$;

-- A hash that changes with the rules of a team.
CREATE FUNCTION retention_key(of_tenant bigint, default_s bigint) RETURNS bigint
    LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(default_s || coalesce(string_agg(
        E'\n' || keep_s || coalesce('+' || totals_s, '') || ' ' || selector, ''
        ORDER BY position, id), ''), 0)
    FROM retention_rule WHERE tenant_id = of_tenant
$$;

-- ---- ingest ----

-- Batches that were accepted, so that a batch that is sent twice is stored once.
CREATE TABLE ingest_batch (
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    batch_id    bytea NOT NULL CHECK (length(batch_id) = 32),
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, batch_id)
);
CREATE INDEX ingest_batch_received ON ingest_batch (received_at);
SELECT protect_tenant_rows('ingest_batch');

-- What each team sent, by day (UTC). Counted in the transaction that stores the profiles, so it is
-- exact. There are several rows per day so that servers do not wait for each other.
CREATE TABLE ingest_usage (
    tenant_id   bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    day         date NOT NULL,
    slot        smallint NOT NULL CHECK (slot BETWEEN 0 AND 15),
    batches     bigint NOT NULL,
    profiles    bigint NOT NULL,
    samples     bigint NOT NULL,
    bytes       bigint NOT NULL, -- in segments, before compaction
    series      bigint NOT NULL, -- whose first profile of the day was counted in this row
    cut_strings bigint NOT NULL DEFAULT 0, -- strings that were cut to the limit string_bytes
    PRIMARY KEY (tenant_id, day, slot)
);
SELECT protect_tenant_rows('ingest_usage');

-- Series of the current day, by their hash (store_series_hash in store/store.h), so that each is
-- counted once. Rows of past days are deleted.
CREATE TABLE ingest_series (
    tenant_id bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    day       date NOT NULL,
    series    bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, series)
);
CREATE INDEX ingest_series_day ON ingest_series (day);
SELECT protect_tenant_rows('ingest_series');

-- The sources that send profiles to a team. Servers write it every few seconds
-- (api/ingest/sources.h); people read it, nothing else depends on it.
CREATE TABLE source (
    tenant_id     bigint NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    key           bytea NOT NULL CHECK (length(key) = 16), -- hash of the next six columns
    token_id      bigint, -- no foreign key: the row remains when the token is deleted
    user_id       bigint,
    service       text NOT NULL,
    agent         text NOT NULL,
    protocol      text NOT NULL,
    address       text NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    batches       bigint NOT NULL,
    profiles      bigint NOT NULL,
    samples       bigint NOT NULL,
    cut_strings   bigint NOT NULL DEFAULT 0, -- see ingest_usage
    errors        bigint NOT NULL,
    last_error    text,
    last_error_at timestamptz,
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX source_seen ON source (tenant_id, last_seen_at DESC);
SELECT protect_tenant_rows('source');

-- ---- rights ----

-- Requests read the catalogue and mark what a team deletes; the rights on store_deletion, block and
-- segment_tenant serve that, with the tenant checked by row-level security. All else is written by
-- flushes, which store batches of many tenants at once, and by background maintenance.
GRANT SELECT ON segment, segment_tenant, block, store_deletion, ingest_usage, source
      TO perfolio_server;
GRANT UPDATE (deletions, leased_by, leased_until) ON block, segment_tenant TO perfolio_server;
GRANT INSERT (tenant_id, selector, begin_ns, end_ns) ON store_deletion TO perfolio_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON retention_rule TO perfolio_server, perfolio_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON store_writer, segment, segment_tenant, block,
      store_deletion, ingest_batch, ingest_usage, ingest_series, source TO perfolio_jobs;
