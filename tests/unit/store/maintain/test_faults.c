/*
 * Failing disks: every call of every kind that a flush, a merge, a deletion, an expiry, a rule,
 * totals and the repair of a damaged part make fails once, or its effect is lost as in a power cut
 * without a sync. Afterwards acknowledged profiles exist once, deleted ones do not, totals add up
 * as before, and no object without a row exists. PERFOLIO_TEST_DATABASE is a libpq connection
 * string of a superuser, for a database with the store's tables; without it all tests are skipped.
 * tests/integration/store/test_store_faults.py sets it.
 */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/formats/folded.h"
#include "store/block/block_format.h"
#include "store/catalogue/writer.h"
#include "store/maintain/claimed_work.h"
#include "store/maintain/flush.h"
#include "store/maintain/verify.h"
#include "store/query/block_cache.h"
#include "store/query/profile_list.h"
#include "store/query/range_query.h"
#include "store/query/scan.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCHES_MAX = 4096, NTH_MAX = 4, DAY_S = 86400 };

struct fixture {
    char path[64];
    struct object_store *objects;
    struct pg_pool *owner, *database, *jobs;
    struct writer *writer;
    struct flusher *flusher;
    struct block_cache *blocks;
    int64_t tenant_id;
    bool is_there[BATCHES_MAX]; /* per batch: the store must have its profile */
    bool is_old[BATCHES_MAX];   /* it is more than a day old, so step_expire deletes it */
    uint32_t totals_count;      /* batches that are kept only in totals */
    uint32_t count;             /* batches sent so far; the next one's number */
    uint64_t rotation;          /* claims so far */
    bool has_failed;            /* a step failed, and is repeated on a working disk */
    struct err err;
};

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *scan)
{
    (void)status, (void)kind, (void)scan;
    return remove(path);
}

/* Runs SQL as the database's owner; returns the first cell of the result. */
static int64_t run_sql(struct fixture *fixture, const char *sql)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    assert_int_equal(pg_take(fixture->owner, &connection, &fixture->err), ERR_NONE);
    if (pg_query(connection, PG_NO_TENANT, sql, NULL, 0, arena, &result, &fixture->err))
        fail_msg("%s: %s", sql, fixture->err.message);
    return pg_row_count(result) ? pg_get_i64(result, 0, 0) : 0;
}

static int set_up(void **state)
{
    const char *conninfo = getenv("PERFOLIO_TEST_DATABASE");
    if (!conninfo)
        return 0;
    struct fixture *fixture = mem_new(struct fixture, 1);
    *state = fixture;
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/perfolio-faults-XXXXXX");
    if (!mkdtemp(fixture->path) ||
        object_folder_open(fixture->path, &fixture->objects, &fixture->err))
        return -1;
    fixture->owner = pg_pool_create(conninfo, NULL, 2);
    fixture->database = pg_pool_create(conninfo, "perfolio_server", 2);
    fixture->jobs = pg_pool_create(conninfo, "perfolio_jobs", 4);
    run_sql(fixture, "DELETE FROM tenant WHERE name = 'faults'");
    fixture->tenant_id =
        run_sql(fixture, "INSERT INTO tenant (name) VALUES ('faults') RETURNING id");
    fixture->writer = writer_create(fixture->jobs, "faults");
    fixture->blocks = block_cache_create(fixture->objects, 0);
    const struct flush_options options = {.objects = fixture->objects,
                                          .jobs_database = fixture->jobs,
                                          .writer = fixture->writer,
                                          .interval_ms = 1};
    return flusher_create(&options, &fixture->flusher, &fixture->err) != ERR_NONE;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture)
        return 0;
    os_fault_reset();
    flusher_destroy(fixture->flusher);
    writer_destroy(fixture->writer);
    block_cache_destroy(fixture->blocks);
    pg_pool_destroy(fixture->owner);
    pg_pool_destroy(fixture->database);
    pg_pool_destroy(fixture->jobs);
    object_store_close(fixture->objects);
    nftw(fixture->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(fixture);
    return 0;
}

/* ---- batches: one profile of one sample, its number is a label ---- */

/* In place of an age: the profile has the last time that a query can contain. */
#define AGE_OF_LAST_TIME INT64_MIN

static void move_to_last_time(const struct batch *batch)
{
    ((struct batch_profile *)(uintptr_t)batch->profiles)->time_ns = INT64_MAX - 1;
}

/* Makes the item of one batch. The item refers to id; the caller frees item->block. */
static void make_item(struct fixture *fixture, uint32_t number, int64_t age_s,
                      uint8_t id[STORE_BATCH_ID_BYTES], struct flush_item *item)
{
    char label[16];
    snprintf(label, sizeof(label), "%u", number);
    const struct batch_text_label labels[] = {
        {.name = span_text("batch"), .value = span_text(label)}};
    const bool is_last = age_s == AGE_OF_LAST_TIME;
    struct batch_source source = {.labels = labels,
                                  .label_count = 1,
                                  .time_ns =
                                      clock_wall_ns() - (is_last ? 0 : age_s) * CLOCK_NS_PER_S};
    struct batch *batch;
    *item = (struct flush_item){.batch_id = id};
    memset(id, 0, STORE_BATCH_ID_BYTES);
    memcpy(id, &number, sizeof(number));
    assert_int_equal(
        folded_decode(span_text("main;work 1\n"), NULL, &source.profile, &fixture->err), ERR_NONE);
    assert_int_equal(batch_from_profile(&source, NULL, &batch, &fixture->err), ERR_NONE);
    if (is_last)
        move_to_last_time(batch);
    buf_init(&item->block, 1 << 20);
    assert_int_equal(block_write_batch(batch, fixture->tenant_id, 0, &item->block, &item->summary,
                                       &fixture->err),
                     ERR_NONE);
    batch_destroy(batch);
}

static enum err_code append(struct fixture *fixture, uint32_t number, int64_t age_s)
{
    uint8_t id[STORE_BATCH_ID_BYTES];
    struct flush_item item;
    make_item(fixture, number, age_s, id, &item);
    flusher_expect(fixture->flusher);
    enum err_code code =
        flusher_append(fixture->flusher, fixture->tenant_id, &item, 1, 0, &fixture->err);
    buf_fini(&item.block);
    return code;
}

static void repair_disk(struct fixture *fixture)
{
    fixture->has_failed = true;
    os_fault_reset();
}

/* Sends a new batch; if that fails, repairs the disk and sends it again. */
static void send(struct fixture *fixture, int64_t age_s)
{
    const uint32_t number = fixture->count++;
    assert_true(number < BATCHES_MAX);
    if (append(fixture, number, age_s)) {
        repair_disk(fixture);
        if (append(fixture, number, age_s))
            fail_msg("sent again: %s", fixture->err.message);
    }
    fixture->is_there[number] = true;
    fixture->is_old[number] = age_s > DAY_S;
}

/* Sums everything, including hours without single profiles. */
static void check_sum(struct fixture *fixture, const struct scan_source *source, int64_t wanted)
{
    arena_auto arena = arena_create();
    const struct store_range_query query = {
        .query = {.tenant_id = fixture->tenant_id, .end_ns = INT64_MAX},
        .step_ns = INT64_MAX,
        .max_series = 1};
    struct store_range range;
    int64_t sum = 0;
    if (range_query_run(source, arena, &query, &range, &fixture->err))
        fail_msg("%s", fixture->err.message);
    for (uint32_t i = 0; range.series_count && i < range.series[0].point_count; i++)
        sum += range.series[0].points[i].value;
    assert_int_equal(sum, wanted);
}

/* Each acknowledged batch exists once, and no other batch does; read from the disk. */
static void check(struct fixture *fixture)
{
    arena_auto arena = arena_create();
    struct block_cache *blocks = block_cache_create(fixture->objects, 0);
    const struct scan_source source = {.blocks = blocks, .database = fixture->database};
    const struct store_profile_query query = {
        .query = {.tenant_id = fixture->tenant_id, .start_ns = 0, .end_ns = INT64_MAX},
        .max_profiles = STORE_PROFILES_MAX};
    struct store_profile_list list;
    if (profile_list_make(&source, arena, &query, &list, &fixture->err))
        fail_msg("%s", fixture->err.message);
    assert_int_equal(list.statistics.broken_count, 0);
    uint32_t *found = arena_new(arena, uint32_t, BATCHES_MAX);
    for (uint32_t i = 0; i < list.profile_count; i++) {
        assert_int_equal(list.profiles[i].total, 1);
        const struct store_label *label = &list.series[list.profiles[i].series].labels[0];
        found[strtoul((const char *)label->value.data, NULL, 10)]++;
    }
    for (uint32_t i = 0; i < fixture->count; i++)
        if (found[i] != fixture->is_there[i])
            fail_msg("batch %u of %u is there %u times, not %d; %u profiles, %u blocks of %" PRId64,
                     i, fixture->count, found[i], fixture->is_there[i], list.profile_count,
                     list.statistics.block_count,
                     run_sql(fixture, "SELECT count(*) FROM segment_tenant"));
    check_sum(fixture, &source, (int64_t)list.profile_count + fixture->totals_count);
    block_cache_destroy(blocks);
}

/* ---- background maintenance ---- */

static enum err_code work(struct fixture *fixture, bool *ret_did)
{
    arena_auto arena = arena_create();
    const struct maintenance_options options = {.objects = fixture->objects,
                                                .jobs_database = fixture->jobs,
                                                .blocks = fixture->blocks,
                                                .writer = fixture->writer};
    struct catalogue_claim claim = {0};
    int64_t writer_id;
    *ret_did = false;
    enum err_code code = writer_get(fixture->writer, &writer_id, &fixture->err);
    if (!code)
        code = catalogue_claim(fixture->jobs, arena, writer_id, 0,
                               &(struct catalogue_claim_order){.rotation = fixture->rotation++},
                               &claim, &fixture->err);
    *ret_did = !code && claim.count;
    return code || !claim.count
               ? code
               : claimed_work_do(&options, writer_id, &claim, false, &fixture->err);
}

/* Works until no work is due. After a failure, repairs the disk, ends the leases and retries. */
static void work_all(struct fixture *fixture)
{
    bool did = true;
    for (int failures = 0; did;) {
        if (!work(fixture, &did))
            continue;
        repair_disk(fixture);
        if (++failures > 2)
            fail_msg("work behind: %s", fixture->err.message);
        run_sql(fixture, "UPDATE segment_tenant SET leased_until = now() - interval '1 second'");
        run_sql(fixture, "UPDATE block SET leased_until = now() - interval '1 second'");
        did = true;
    }
}

static void make_due(struct fixture *fixture)
{
    run_sql(fixture, "UPDATE segment SET created_at = created_at - interval '1 hour'");
    run_sql(fixture, "UPDATE block SET created_at = created_at - interval '1 hour'");
}

/* Deletes the rows of replaced segments and blocks, and their objects. */
static void tidy(struct fixture *fixture)
{
    arena_auto arena = arena_create();
    struct pg_result *result;
    pg_auto connection = NULL;
    for (int i = 0; i < 2; i++) {
        run_sql(fixture, "UPDATE segment SET swapped_at = swapped_at - interval '1 hour'");
        run_sql(fixture, "UPDATE block SET swapped_at = swapped_at - interval '1 hour'");
        assert_int_equal(
            catalogue_tidy(fixture->jobs, writer_peek(fixture->writer), 0, 0, &fixture->err),
            ERR_NONE);
    }
    assert_int_equal(pg_take(fixture->owner, &connection, &fixture->err), ERR_NONE);
    assert_int_equal(pg_query(connection, PG_NO_TENANT, "SELECT object_key FROM object_trash", NULL,
                              0, arena, &result, &fixture->err),
                     ERR_NONE);
    for (int row = 0; row < pg_row_count(result); row++) {
        const char *key = pg_get_text(result, row, 0);
        if (object_delete(fixture->objects, key, &fixture->err)) {
            repair_disk(fixture);
            assert_int_equal(object_delete(fixture->objects, key, &fixture->err), ERR_NONE);
        }
    }
    run_sql(fixture, "DELETE FROM object_trash");
}

/* The key of the newest segment, in arena. */
static const char *path_of_newest(struct fixture *fixture, struct arena *arena)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    assert_int_equal(pg_take(fixture->owner, &connection, &fixture->err), ERR_NONE);
    assert_int_equal(pg_query(connection, PG_NO_TENANT,
                              "SELECT object_key FROM segment ORDER BY id DESC LIMIT 1", NULL, 0,
                              arena, &result, &fixture->err),
                     ERR_NONE);
    return arena_printf(arena, "%s/%s", fixture->path, pg_get_text(result, 0, 0));
}

static void spoil_newest(struct fixture *fixture, long at)
{
    arena_auto arena = arena_create();
    const char *path = path_of_newest(fixture, arena);
    assert_int_equal(chmod(path, 0600), 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

/* ---- steps ---- */

static void step_flush(struct fixture *fixture)
{
    send(fixture, 60);
}

static void step_merge(struct fixture *fixture)
{
    make_due(fixture);
    work_all(fixture);
}

static void add_deletion(struct fixture *fixture, const char *selector)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct catalogue_deletion deletion = {.selector = selector, .end_ns = INT64_MAX};
    assert_int_equal(pg_take(fixture->jobs, &connection, &fixture->err), ERR_NONE);
    assert_int_equal(pg_begin(connection, PG_NO_TENANT, &fixture->err), ERR_NONE);
    assert_int_equal(
        catalogue_add_deletion(connection, arena, fixture->tenant_id, &deletion, &fixture->err),
        ERR_NONE);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_NONE);
}

static void step_delete(struct fixture *fixture)
{
    char selector[40];
    uint32_t number = fixture->count - 1;
    snprintf(selector, sizeof(selector), "{batch=\"%u\"}", number);
    add_deletion(fixture, selector);
    fixture->is_there[number] = false;
    work_all(fixture);
}

static void step_expire(struct fixture *fixture)
{
    run_sql(fixture, "UPDATE tenant SET profile_retention_s = 5 * 86400 WHERE name = 'faults'");
    assert_int_equal(catalogue_expire(fixture->jobs, 0, &fixture->err), ERR_NONE);
    for (uint32_t i = 0; i < fixture->count; i++)
        fixture->is_there[i] &= !fixture->is_old[i];
    tidy(fixture);
    run_sql(fixture, "UPDATE tenant SET profile_retention_s = NULL WHERE name = 'faults'");
}

/* A rule matches one batch of a day's block: when the rule has been applied, the batch is no longer
 * in the object. */
static void step_rule(struct fixture *fixture)
{
    char sql[200];
    send(fixture, 10 * DAY_S);
    send(fixture, 10 * DAY_S);
    make_due(fixture);
    work_all(fixture);
    const uint32_t number = fixture->count - 1;
    snprintf(sql, sizeof(sql),
             "INSERT INTO retention_rule (tenant_id, position, selector, keep_s) "
             "VALUES (%" PRId64 ", 1, '{batch=\"%u\"}', 86400)",
             fixture->tenant_id, number);
    run_sql(fixture, sql);
    fixture->is_there[number] = false;
    work_all(fixture);
    run_sql(fixture, "DELETE FROM retention_rule");
    tidy(fixture);
}

/* As above, but the hour's totals stay; they are checked in the object after the rule has been
 * removed. */
static void step_totals(struct fixture *fixture)
{
    char sql[200];
    send(fixture, 10 * DAY_S);
    send(fixture, 10 * DAY_S);
    make_due(fixture);
    work_all(fixture);
    const uint32_t number = fixture->count - 1;
    snprintf(sql, sizeof(sql),
             "INSERT INTO retention_rule (tenant_id, position, selector, keep_s, totals_s) "
             "VALUES (%" PRId64 ", 1, '{batch=\"%u\"}', 86400, 300 * 86400)",
             fixture->tenant_id, number);
    run_sql(fixture, sql);
    fixture->is_there[number] = false;
    fixture->totals_count++;
    work_all(fixture);
    run_sql(fixture, "DELETE FROM retention_rule");
    tidy(fixture);
}

/* Two segments with one part each, of which the second cannot be read: a merge has marked them. */
static void prepare_broken(struct fixture *fixture)
{
    struct flush_item items[2];
    uint8_t ids[2][STORE_BATCH_ID_BYTES];
    bool did;
    for (uint32_t i = 0; i < 2; i++)
        make_item(fixture, fixture->count + i, 60, ids[i], &items[i]);
    const long first_byte = (long)items[0].block.size + (long)sizeof(struct block_header);
    flusher_expect(fixture->flusher);
    assert_int_equal(
        flusher_append(fixture->flusher, fixture->tenant_id, items, 2, 0, &fixture->err), ERR_NONE);
    for (uint32_t i = 0; i < 2; i++) {
        buf_fini(&items[i].block);
        fixture->is_there[fixture->count++] = true;
    }
    spoil_newest(fixture, first_byte);
    make_due(fixture);
    fixture->rotation = 0; /* segments come first */
    assert_int_equal(work(fixture, &did), ERR_NONE);
    assert_int_equal(run_sql(fixture, "SELECT count(*) FROM segment_tenant WHERE is_broken"
                                      " AND NOT is_swapped AND broken_why = 'unreadable'"),
                     1);
}

/* The first part is merged; the second gets its own object and is given up for a deletion. */
static void step_repair(struct fixture *fixture)
{
    run_sql(fixture, "UPDATE segment_tenant SET retry_at = now()");
    work_all(fixture);
    add_deletion(fixture, "{batch=\"none\"}");
    run_sql(fixture, "UPDATE segment_tenant SET retry_at = now(),"
                     " broken_since = now() - interval '8 days' WHERE is_broken");
    work_all(fixture);
    fixture->is_there[fixture->count - 1] = false;
    tidy(fixture);
}

static void (*const steps[])(struct fixture *) = {step_flush, step_merge,  step_delete, step_expire,
                                                  step_rule,  step_totals, step_repair};
enum { STEP_COUNT = sizeof(steps) / sizeof(steps[0]) };

/* The state before each step: an old batch and a new one, in blocks except for the merge. */
static void prepare(struct fixture *fixture, int step)
{
    send(fixture, 10 * DAY_S);
    send(fixture, 60);
    if (step >= 2) {
        make_due(fixture);
        work_all(fixture);
    }
    if (steps[step] == step_repair)
        prepare_broken(fixture);
}

static enum err_code visit(void *context, const char *key, uint64_t size, int64_t modified_ns,
                           struct err *err)
{
    (void)size, (void)modified_ns;
    struct fixture *fixture = context;
    arena_auto arena = arena_create();
    return catalogue_discard_unknown(fixture->jobs, arena, &key, 1, err);
}

/* All objects without a row belong to a writer that has ended by then. */
static void check_objects(struct fixture *fixture)
{
    struct store_check_result result;
    const struct store_check whole = {.database = fixture->owner, .objects = fixture->objects};
    assert_int_equal(verify_run(&whole, &result, &fixture->err), ERR_NONE);
    assert_int_equal(result.problem_counts[STORE_PROBLEM_BROKEN], 0);
    assert_int_equal(result.problem_counts[STORE_PROBLEM_MISSING], 0);
    assert_int_equal(result.problem_counts[STORE_PROBLEM_DIFFERS], 0);
    writer_end(fixture->writer, writer_peek(fixture->writer));
    assert_int_equal(object_list(fixture->objects, "", visit, fixture, &fixture->err), ERR_NONE);
    tidy(fixture);
    assert_int_equal(verify_run(&whole, &result, &fixture->err), ERR_NONE);
    for (int i = 0; i < STORE_PROBLEM_COUNT; i++)
        assert_int_equal(result.problem_counts[i], 0);
}

static void every_call_fails_once(void **state)
{
    static const struct {
        enum os_call call;
        int error;
    } faults[] = {{OS_CALL_WRITE, ENOSPC}, {OS_CALL_WRITE, EIO},   {OS_CALL_WRITE, 0},
                  {OS_CALL_SYNC, EIO},     {OS_CALL_OPEN, ENOSPC}, {OS_CALL_RENAME, EIO},
                  {OS_CALL_READ, EIO},     {OS_CALL_CLOSE, EIO},   {OS_CALL_UNLINK, EIO},
                  {OS_CALL_MKDIR, ENOSPC}};
    struct fixture *fixture = *state;
    if (!fixture)
        skip();
    unsigned failures = 0;
    for (int step = 0; step < STEP_COUNT; step++) {
        for (size_t fault = 0; fault < sizeof(faults) / sizeof(faults[0]); fault++) {
            for (unsigned nth = 1; nth <= NTH_MAX; nth++) {
                prepare(fixture, step);
                fixture->has_failed = false;
                os_fault_plan(faults[fault].call, nth, faults[fault].error, false);
                steps[step](fixture);
                const bool hit = fixture->has_failed || os_fault_count(faults[fault].call) >= nth;
                os_fault_reset();
                check(fixture);
                failures += hit;
                if (!hit)
                    break;
            }
        }
        check_objects(fixture);
        check(fixture);
    }
    print_message("%u calls failed, %u batches\n", failures, fixture->count);
    assert_true(failures > 20);
}

/* The results of a query that reads the disk, and the number of parts that it left out. */
static enum err_code query_all(struct fixture *fixture, uint32_t *ret_profiles,
                               uint32_t *ret_broken)
{
    arena_auto arena = arena_create();
    struct block_cache *blocks = block_cache_create(fixture->objects, 0);
    const struct scan_source source = {.blocks = blocks, .database = fixture->database};
    const struct store_profile_query query = {
        .query = {.tenant_id = fixture->tenant_id, .start_ns = 0, .end_ns = INT64_MAX},
        .max_profiles = STORE_PROFILES_MAX};
    struct store_profile_list list;
    enum err_code code = profile_list_make(&source, arena, &query, &list, &fixture->err);
    block_cache_destroy(blocks);
    if (code)
        return code;
    *ret_profiles = list.profile_count;
    *ret_broken = list.statistics.broken_count;
    return ERR_NONE;
}

static void assert_query(struct fixture *fixture, uint32_t profiles_wanted, uint32_t broken_wanted)
{
    uint32_t profiles, broken;
    if (query_all(fixture, &profiles, &broken))
        fail_msg("%s", fixture->err.message);
    assert_int_equal(profiles, profiles_wanted);
    assert_int_equal(broken, broken_wanted);
}

static int64_t count_marks(struct fixture *fixture)
{
    return run_sql(fixture, "SELECT count(*) FROM segment_tenant WHERE is_broken AND NOT is_swapped"
                            " AND broken_why = 'unreadable'");
}

static void age_marks(struct fixture *fixture)
{
    run_sql(fixture, "UPDATE segment_tenant SET retry_at = now(),"
                     " broken_since = now() - interval '8 days' WHERE is_broken");
}

static uint64_t count_unreadable(struct fixture *fixture)
{
    struct store_check_result result;
    const struct store_check whole = {.database = fixture->owner, .objects = fixture->objects};
    assert_int_equal(verify_run(&whole, &result, &fixture->err), ERR_NONE);
    assert_int_equal(result.problem_counts[STORE_PROBLEM_BROKEN], 0);
    return result.problem_counts[STORE_PROBLEM_UNREADABLE];
}

/* The last of three segments has a bad sector: queries, merges and checks continue without it. */
static void an_unreadable_object_blocks_no_other(void **state)
{
    struct fixture *fixture = *state;
    bool did;
    if (!fixture)
        skip();
    arena_auto arena = arena_create();
    for (int i = 0; i < 3; i++)
        send(fixture, 60);
    os_fault_unreadable(path_of_newest(fixture, arena));
    assert_query(fixture, 2, 1);
    assert_int_equal(count_unreadable(fixture), 1);
    make_due(fixture);
    assert_int_equal(work(fixture, &did), ERR_NONE);
    assert_int_equal(count_marks(fixture), 1);
    assert_int_equal(
        run_sql(fixture, "SELECT count(*) FROM segment_tenant WHERE leased_by IS NOT NULL"), 0);
    work_all(fixture);
    assert_int_equal(run_sql(fixture, "SELECT count(*) FROM segment_tenant WHERE NOT is_swapped"),
                     1);
    run_sql(fixture, "UPDATE segment_tenant SET retry_at = now() WHERE is_broken");
    work_all(fixture);
    assert_int_equal(count_marks(fixture), 1);
    assert_query(fixture, 2, 1);
    os_fault_reset(); /* the disk works again */
    check(fixture);
    assert_int_equal(count_unreadable(fixture), 0); /* which removes the mark */
    assert_int_equal(count_marks(fixture), 0);
    make_due(fixture);
    work_all(fixture);
    assert_int_equal(run_sql(fixture, "SELECT count(*) FROM segment_tenant WHERE NOT is_swapped"),
                     0);
    check(fixture);
    check_objects(fixture);
}

/* An unreadable part that a deletion waits for is given up after a week, like a corrupt one. */
static void a_deletion_waits_a_week_for_unreadable_parts(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture)
        skip();
    arena_auto arena = arena_create();
    for (int i = 0; i < 2; i++)
        send(fixture, 60);
    os_fault_unreadable(path_of_newest(fixture, arena));
    add_deletion(fixture, "{batch=\"1\"}");
    make_due(fixture);
    work_all(fixture);
    assert_int_equal(count_marks(fixture), 1);
    age_marks(fixture);
    work_all(fixture);
    assert_int_equal(run_sql(fixture, "SELECT count(*) FROM segment_tenant WHERE NOT is_swapped"),
                     0);
    fixture->is_there[1] = false;
    tidy(fixture);
    os_fault_reset();
    check(fixture);
    check_objects(fixture);
}

/* No result includes the part, marked or given up, whatever fails first. */
static void an_absent_disk_marks_no_object(void **state)
{
    static const enum os_call calls[] = {OS_CALL_READ, OS_CALL_OPEN};
    struct fixture *fixture = *state;
    uint32_t profiles, broken;
    bool did;
    if (!fixture)
        skip();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        prepare_broken(fixture);
        add_deletion(fixture, "{batch=\"none\"}");
        send(fixture, 60);
        send(fixture, 60);
        age_marks(fixture);
        make_due(fixture);
        os_fault_plan(calls[i], 1, EIO, true);
        assert_int_equal(query_all(fixture, &profiles, &broken), ERR_IO);
        for (int round = 0; round < 3; round++) {
            const bool is_done = work(fixture, &did) == ERR_NONE && !did;
            assert_true(is_done || fixture->err.code == ERR_IO);
        }
        assert_int_equal(count_marks(fixture), 1);
        os_fault_reset();
        run_sql(fixture, "UPDATE segment_tenant SET leased_until = now() - interval '1 second'");
        assert_query(fixture, fixture->count - 1 - (uint32_t)i, 1);
        fixture->has_failed = false;
        work_all(fixture);
        fixture->is_there[fixture->count - 3] = false; /* given up, on a working disk */
        tidy(fixture);
        check(fixture);
    }
    check_objects(fixture);
}

static void writes_without_a_sync_are_lost(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture)
        skip();
    for (int step = 0; step < STEP_COUNT; step++) {
        for (int round = 0; round < 3; round++) {
            prepare(fixture, step);
            os_fault_record(fixture->path);
            steps[step](fixture);
            os_fault_lose_unsynced();
            os_fault_reset();
            check(fixture);
        }
        check_objects(fixture);
        check(fixture);
    }
}

static void the_last_timestamp_survives_merging(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture)
        skip();
    send(fixture, AGE_OF_LAST_TIME);
    send(fixture, 60);
    check(fixture);
    for (int i = 0; i < 2; i++) {
        step_merge(fixture);
        check(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_call_fails_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_without_a_sync_are_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_timestamp_survives_merging, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unreadable_object_blocks_no_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deletion_waits_a_week_for_unreadable_parts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_absent_disk_marks_no_object, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
