#include "store/maintain/flush.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "store/block/block_format.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/seen_series.h"
#include "store/catalogue/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

enum {
    DUE_PARTS = 4096,      /* a flush begins when so many batches wait */
    TEAM_PARTS_MAX = 2048, /* of one team in one flush, unless one request has more */
    SEGMENT_MAX_BYTES = 1 << 30,
    PAGE_BYTES = 4096,
    DEADLINE_MS = 15000, /* for requests without a deadline */
    LATE_RETRY_S = 5,
};

/* A batch that waits for its flush, in memory of the thread that waits for it. */
struct pending_batch {
    struct pending_batch *next;
    struct buf *block;
    struct catalogue_part part;
    int64_t since_ns;
    int64_t deadline_ns;
    sem_t *done; /* posted when the whole request is done; only in its last batch, else NULL */
    struct err err;
};

struct flusher {
    struct flush_options options;
    pthread_t thread;
    pthread_mutex_t mutex;  /* guards the members below, except seen */
    pthread_cond_t arrived; /* signalled when a flush is due, not for each request */
    struct pending_batch *first;
    struct pending_batch **last;
    size_t waiting_bytes; /* size of the batches in the list and of those being written */
    uint32_t waiting_count;
    int waiting_requests;
    int expected_requests; /* announced requests that are not in the list yet */
    int flushing_requests;
    int64_t flushing_since_ns;
    bool should_stop;
    struct seen_series seen; /* used by the flush thread only */
};

/* ---- one flush ---- */

struct flush {
    struct flusher *flusher;
    struct arena *arena;
    struct pending_batch **batches; /* by tenant, then by arrival; invalid after wake_all */
    struct catalogue_part *parts;
    struct buf *blocks; /* the blocks of the committed parts */
    uint32_t count;
    int64_t deadline_ns; /* the earliest deadline of the requests, for the statements */
    int64_t writer_id;
    const char *object_key;
    bool may_be_put;    /* the object may exist without a row */
    struct buf segment; /* preceded by padding, so that it begins at a page */
    size_t padding;
};

static int compare_batches(const void *a, const void *b)
{
    const struct pending_batch *x = *(struct pending_batch *const *)a,
                               *y = *(struct pending_batch *const *)b;
    if (x->part.tenant_id != y->part.tenant_id)
        return x->part.tenant_id < y->part.tenant_id ? -1 : 1;
    return (x->since_ns > y->since_ns) - (x->since_ns < y->since_ns);
}

/* Refuses a batch before anything of it was written. */
static void refuse_late(struct pending_batch *batch)
{
    err_set(&batch->err, ERR_BUSY,
            "the profiles have waited too long for the database: send them again");
    batch->err.retry_after_s = LATE_RETRY_S;
}

/* Collects and sorts the batches, without those past their deadline. */
static void collect_batches(struct flush *flush, struct pending_batch *first, uint32_t count)
{
    const int64_t now_ns = clock_monotonic_ns();
    flush->batches = arena_new(flush->arena, struct pending_batch *, count);
    flush->parts = arena_new(flush->arena, struct catalogue_part, count);
    flush->blocks = arena_new(flush->arena, struct buf, count);
    flush->deadline_ns = INT64_MAX;
    for (struct pending_batch *batch = first; batch; batch = batch->next) {
        if (batch->deadline_ns <= now_ns) {
            refuse_late(batch);
            continue;
        }
        flush->batches[flush->count++] = batch;
        if (batch->deadline_ns < flush->deadline_ns)
            flush->deadline_ns = batch->deadline_ns;
    }
    qsort(flush->batches, flush->count, sizeof(struct pending_batch *), compare_batches);
    for (uint32_t i = 0; i < flush->count; i++)
        flush->parts[i] = flush->batches[i]->part;
}

/* The segment begins at a page, so that it can be written directly, without a copy. */
static void begin_segment(struct flush *flush, size_t bytes)
{
    buf_clear(&flush->segment);
    const uint8_t *space = buf_reserve(&flush->segment, bytes + PAGE_BYTES);
    flush->padding = space ? (PAGE_BYTES - (uintptr_t)space % PAGE_BYTES) % PAGE_BYTES : 0;
    buf_commit(&flush->segment, flush->padding);
}

static struct span segment_bytes(const struct flush *flush)
{
    return span_of(flush->segment.data + flush->padding, flush->segment.size - flush->padding);
}

/* Lays out the new blocks one after the other; each begins at a multiple of 64. */
static void lay_out_segment(struct flush *flush)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < flush->count; i++)
        bytes += flush->parts[i].state == CATALOGUE_NEW ? flush->batches[i]->block->size : 0;
    begin_segment(flush, bytes);
    for (uint32_t i = 0; i < flush->count; i++) {
        struct catalogue_part *part = &flush->parts[i];
        if (part->state != CATALOGUE_NEW)
            continue;
        part->offset = flush->segment.size - flush->padding;
        part->bytes = flush->batches[i]->block->size;
        buf_append_span(&flush->segment, buf_span(flush->batches[i]->block));
    }
}

static int32_t utc_day(int64_t wall_ns)
{
    return (int32_t)(wall_ns / (24 * 3600 * CLOCK_NS_PER_S));
}

/* Removes the series that this server has counted for the day from the new parts. */
static void skip_seen_series(struct flush *flush, int32_t day)
{
    struct seen_series *seen = &flush->flusher->seen;
    seen_series_begin(seen, day);
    for (uint32_t i = 0; i < flush->count; i++) {
        struct catalogue_part *part = &flush->parts[i];
        if (part->state != CATALOGUE_NEW)
            continue;
        uint64_t *left = arena_new_raw(flush->arena, uint64_t, part->series_count);
        uint32_t count = 0;
        for (uint32_t j = 0; j < part->series_count; j++) {
            if (!seen_series_has(seen, part->tenant_id, part->series[j]))
                left[count++] = part->series[j];
        }
        part->series = left;
        part->series_count = count;
    }
}

/* Remembers the series of new parts; refused and duplicate parts have counted none. */
static void remember_series(struct flush *flush)
{
    for (uint32_t i = 0; i < flush->count; i++) {
        const struct catalogue_part *part = &flush->parts[i];
        if (part->state != CATALOGUE_NEW)
            continue;
        for (uint32_t j = 0; j < part->series_count; j++)
            seen_series_add(&flush->flusher->seen, part->tenant_id, part->series[j]);
    }
}

/* Puts the segment. The deadline limits only the statements, so the duration of the put is added to
 * it. */
static enum err_code put_segment(struct flush *flush, struct pg_connection *connection,
                                 struct span segment, struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    flush->may_be_put = true;
    const enum err_code code =
        object_put(flush->flusher->options.objects, flush->object_key, segment, err);
    flush->deadline_ns += clock_monotonic_ns() - begin_ns;
    pg_limit_until(connection, flush->deadline_ns);
    return code;
}

static enum err_code write_segment(struct flush *flush, struct pg_connection *connection,
                                   struct err *err)
{
    struct flusher *flusher = flush->flusher;
    char id[DIGEST_ID_BYTES];
    enum err_code code = catalogue_begin_flush(
        connection, flush->arena, flusher->options.retention_s, flush->parts, flush->count, err);
    if (code)
        return code;
    lay_out_segment(flush);
    const struct span segment = segment_bytes(flush);
    digest_random_id(id);
    flush->object_key = arena_printf(flush->arena, "segment/%" PRId64 "/%s", flush->writer_id, id);
    if (buf_failed(&flush->segment))
        code = err_set(err, ERR_TOO_LARGE, "a segment of more than %d bytes", SEGMENT_MAX_BYTES);
    else if (segment.size)
        code = put_segment(flush, connection, segment, err);
    const int32_t day = utc_day(clock_wall_ns());
    if (!code) {
        skip_seen_series(flush, day);
        code = catalogue_queue_usage(connection, flush->arena, flush->writer_id, day, flush->parts,
                                     flush->count, err);
    }
    if (code) {
        pg_rollback(connection);
        return code;
    }
    code = catalogue_commit_flush(connection, flush->arena, flush->writer_id, flush->object_key,
                                  segment.size, flush->parts, flush->count, err);
    if (!code)
        remember_series(flush);
    return code;
}

/* Sets the outcome of each batch; committed blocks move here. */
static void set_outcomes(struct flush *flush, enum err_code code, const struct err *err)
{
    for (uint32_t i = 0; i < flush->count; i++) {
        struct pending_batch *batch = flush->batches[i];
        batch->part.state = flush->parts[i].state;
        if (code) {
            batch->err = *err;
        } else if (batch->part.state == CATALOGUE_TOO_OLD) {
            err_set(
                &batch->err, ERR_INVALID,
                "the profiles are older than the team's retention (its retention rules, the quota "
                "profile_retention_s, or the setting tenant-profile-retention)");
        } else if (batch->part.state == CATALOGUE_NO_TENANT) {
            err_set(&batch->err, ERR_BUSY, "this team is being deleted");
            batch->err.retry_after_s = 10;
        } else if (batch->part.state == CATALOGUE_NEW) {
            flush->blocks[i] = *batch->block;
            *batch->block = (struct buf){.max_size = batch->block->max_size};
        }
    }
}

static enum err_code write_as_writer(struct flush *flush, struct err *err)
{
    struct flusher *flusher = flush->flusher;
    struct pg_pool *database = flusher->options.jobs_database;
    pg_auto connection = NULL;
    enum err_code code = writer_get(flusher->options.writer, &flush->writer_id, err);
    if (!code)
        code = pg_take(database, &connection, err);
    if (code)
        return code;
    pg_limit_until(connection, flush->deadline_ns);
    return write_segment(flush, connection, err);
}

/*
 * A failed write leaves at most an object without a row, which belongs to a writer that ends:
 *
 *   the put failed, or the commit is unknown   the writer is in doubt; the search for orphans looks
 *                                              for a row, so an object that has one remains
 *   the transaction was rolled back            the writer is in doubt
 *   another server has ended the writer        it can commit nothing any more
 *   this server dies, here or between the      its heartbeat ends, and another server, or the next
 *   put and the commit                         start of this one, ends the writer
 *
 * No request of the flush was acknowledged, so nothing is lost.
 */
static void write_with_retry(struct flush *flush)
{
    struct writer *writer = flush->flusher->options.writer;
    struct err err = {0};
    enum err_code code = write_as_writer(flush, &err);
    if (code == ERR_CONFLICT || (code && err.is_rolled_back)) {
        if (code == ERR_CONFLICT)
            writer_lose(writer, flush->writer_id);
        else
            writer_doubt(writer, flush->writer_id);
        code = write_as_writer(flush, &err);
    }
    if (code && flush->may_be_put)
        writer_doubt(writer, flush->writer_id);
    else if (flush->may_be_put)
        writer_confirm(writer, flush->writer_id);
    set_outcomes(flush, code, &err);
}

/* Wakes each request by itself: woken together they would queue at the mutex. */
static void wake_all(struct flusher *flusher, struct pending_batch *first, size_t bytes)
{
    pthread_mutex_lock(&flusher->mutex);
    flusher->waiting_bytes -= bytes;
    flusher->flushing_requests = 0;
    pthread_mutex_unlock(&flusher->mutex);
    while (first) {
        struct pending_batch *next = first->next; /* a request that is woken frees its batches */
        if (first->done)
            sem_post(first->done);
        first = next;
    }
}

/* Runs after all requests were woken. */
static void cache_blocks(struct flush *flush)
{
    const struct flush_options *options = &flush->flusher->options;
    for (uint32_t i = 0; i < flush->count; i++) {
        if (flush->blocks[i].size && options->keep)
            options->keep(options->keep_context, flush->parts[i].tenant_id, flush->object_key,
                          flush->parts[i].offset, &flush->blocks[i]);
        buf_fini(&flush->blocks[i]);
    }
}

static void flush_batches(struct flusher *flusher, struct pending_batch *first, uint32_t count,
                          size_t bytes)
{
    arena_auto arena = arena_create();
    struct flush flush = {.flusher = flusher, .arena = arena};
    buf_init(&flush.segment, SEGMENT_MAX_BYTES);
    collect_batches(&flush, first, count);
    if (flush.count)
        write_with_retry(&flush);
    wake_all(flusher, first, bytes);
    buf_fini(&flush.segment);
    cache_blocks(&flush);
}

/* ---- the thread ---- */

/* Whether a flush has to begin. If not and batches wait, *ret_due_ns is the time at which it has to
 * begin, provided that no more requests arrive. */
static bool is_due(const struct flusher *flusher, int64_t now_ns, int64_t *ret_due_ns)
{
    if (!flusher->first)
        return false;
    const int interval_ms = flusher->options.interval_ms;
    const int extra_ms =
        interval_ms < FLUSH_EXTRA_WAIT_MS / 2 ? interval_ms * 2 : FLUSH_EXTRA_WAIT_MS;
    *ret_due_ns = flusher->first->since_ns + interval_ms * CLOCK_NS_PER_MS;
    if (now_ns >= *ret_due_ns && flusher->expected_requests)
        *ret_due_ns += extra_ms * CLOCK_NS_PER_MS;
    return now_ns >= *ret_due_ns || flusher->should_stop ||
           flusher->waiting_bytes >= FLUSH_SEGMENT_BYTES || flusher->waiting_count >= DUE_PARTS ||
           (flusher->options.max_waiting_requests &&
            flusher->waiting_requests >= flusher->options.max_waiting_requests);
}

/* Called with the mutex held. The thread sleeps until a flush is due by the clock and is woken only
 * when one is due earlier: a needless wake-up costs as much as decoding a small request. */
static void wake_if_due(struct flusher *flusher)
{
    int64_t due_ns;
    if (is_due(flusher, clock_monotonic_ns(), &due_ns))
        pthread_cond_signal(&flusher->arrived);
}

static void wait_until(struct flusher *flusher, int64_t due_ns)
{
    const struct timespec until = {.tv_sec = due_ns / CLOCK_NS_PER_S,
                                   .tv_nsec = due_ns % CLOCK_NS_PER_S};
    pthread_cond_timedwait(&flusher->arrived, &flusher->mutex, &until);
}

/* The batches of one request: first to last in the list. Only the last one has `done` set. */
struct request_batches {
    struct pending_batch *first;
    struct pending_batch *last;
    uint32_t count;
    size_t bytes;
};

static struct request_batches next_request(struct pending_batch *first)
{
    struct request_batches batches = {.first = first};
    for (batches.last = first;; batches.last = batches.last->next) {
        batches.count++;
        batches.bytes += batches.last->block->size;
        if (batches.last->done || !batches.last->next)
            return batches;
    }
}

/* Adds the request's batches to those of its team (counts; teams maps a team to its index there).
 * False: the team's limit for one flush does not allow them. A limit per team keeps one that
 * sends many small batches from delaying the others. */
static bool take_place(struct map_u64 *teams, uint32_t *counts,
                       const struct request_batches *batches)
{
    const uint32_t team =
        map_u64_add(teams, (uint64_t)batches->first->part.tenant_id, teams->count);
    if (counts[team] && counts[team] + batches->count > TEAM_PARTS_MAX)
        return false;
    counts[team] += batches->count;
    return true;
}

/* Called with the mutex held. Takes the requests of a flush from the list; the others stay for the
 * next one. */
static struct pending_batch *take_requests(struct flusher *flusher, uint32_t *ret_count,
                                           size_t *ret_bytes)
{
    struct pending_batch *taken = NULL, **taken_last = &taken, *next;
    struct map_u64 teams = {0};
    uint32_t *counts = mem_new(uint32_t, (size_t)flusher->waiting_requests);
    const int request_count = flusher->waiting_requests;
    *ret_count = flusher->waiting_count;
    *ret_bytes = 0;
    flusher->waiting_count = 0;
    flusher->waiting_requests = 0;
    next = flusher->first;
    flusher->last = &flusher->first;
    while (next) {
        struct request_batches batches = next_request(next);
        const bool is_taken = take_place(&teams, counts, &batches);
        struct pending_batch ***last = is_taken ? &taken_last : &flusher->last;
        next = batches.last->next;
        **last = batches.first;
        *last = &batches.last->next;
        *ret_bytes += is_taken ? batches.bytes : 0;
        flusher->waiting_count += is_taken ? 0 : batches.count;
        flusher->waiting_requests += !is_taken;
    }
    *taken_last = *flusher->last = NULL;
    *ret_count -= flusher->waiting_count;
    flusher->flushing_requests = request_count - flusher->waiting_requests;
    map_u64_fini(&teams);
    mem_free(counts);
    return taken;
}

/* Waits until a flush is due and takes its batches; NULL when the flusher stops. */
static struct pending_batch *take_batches(struct flusher *flusher, uint32_t *ret_count,
                                          size_t *ret_bytes)
{
    pthread_mutex_lock(&flusher->mutex);
    int64_t due_ns;
    while (!is_due(flusher, clock_monotonic_ns(), &due_ns)) {
        if (flusher->first)
            wait_until(flusher, due_ns);
        else if (flusher->should_stop)
            break;
        else
            pthread_cond_wait(&flusher->arrived, &flusher->mutex);
    }
    struct pending_batch *first =
        flusher->first ? take_requests(flusher, ret_count, ret_bytes) : NULL;
    flusher->flushing_since_ns = clock_monotonic_ns();
    pthread_mutex_unlock(&flusher->mutex);
    return first;
}

static void *flusher_main(void *context)
{
    struct flusher *flusher = context;
    uint32_t count;
    size_t bytes;
    struct pending_batch *first;
    while ((first = take_batches(flusher, &count, &bytes)))
        flush_batches(flusher, first, count, bytes);
    return NULL;
}

enum err_code flusher_create(const struct flush_options *options, struct flusher **ret_flusher,
                             struct err *err)
{
    struct flusher *flusher = mem_new(struct flusher, 1);
    pthread_condattr_t attributes;
    flusher->options = *options;
    flusher->last = &flusher->first;
    if (!flusher->options.interval_ms)
        flusher->options.interval_ms = FLUSH_INTERVAL_MS;
    if (!flusher->options.max_waiting_bytes)
        flusher->options.max_waiting_bytes = FLUSH_WAITING_BYTES;
    pthread_mutex_init(&flusher->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&flusher->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&flusher->thread, NULL, flusher_main, flusher) != 0) {
        mem_free(flusher);
        return err_set(err, ERR_INTERNAL, "cannot start the thread that writes segments");
    }
    *ret_flusher = flusher;
    return ERR_NONE;
}

void flusher_destroy(struct flusher *flusher)
{
    if (!flusher)
        return;
    pthread_mutex_lock(&flusher->mutex);
    flusher->should_stop = true;
    pthread_cond_signal(&flusher->arrived);
    pthread_mutex_unlock(&flusher->mutex);
    pthread_join(flusher->thread, NULL);
    seen_series_fini(&flusher->seen);
    pthread_cond_destroy(&flusher->arrived);
    pthread_mutex_destroy(&flusher->mutex);
    mem_free(flusher);
}

void flusher_expect(struct flusher *flusher)
{
    pthread_mutex_lock(&flusher->mutex);
    flusher->expected_requests++;
    pthread_mutex_unlock(&flusher->mutex);
}

/* Called with the mutex held. A flush that waits only for expected requests becomes due with the
 * last of them. */
static void end_expectation(struct flusher *flusher)
{
    if (--flusher->expected_requests == 0)
        wake_if_due(flusher);
}

void flusher_cancel_expected(struct flusher *flusher)
{
    pthread_mutex_lock(&flusher->mutex);
    end_expectation(flusher);
    pthread_mutex_unlock(&flusher->mutex);
}

/* Called with the mutex held. While a bucket cannot be reached a put takes long, and each request
 * that waits for the put occupies a thread that other requests need. */
static bool is_stuck(const struct flusher *flusher)
{
    const int most = flusher->options.max_waiting_requests;
    return most && flusher->flushing_requests &&
           flusher->flushing_requests + flusher->waiting_requests >= most &&
           clock_monotonic_ns() - flusher->flushing_since_ns > FLUSH_STUCK_MS * CLOCK_NS_PER_MS;
}

/* Called with the mutex held. */
static enum err_code enqueue(struct flusher *flusher, struct pending_batch *batches, uint32_t count,
                             struct err *err)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += batches[i].block->size;
    if (flusher->waiting_bytes &&
        flusher->waiting_bytes + bytes > flusher->options.max_waiting_bytes) {
        err_set(err, ERR_BUSY, "too many profiles wait to be written: send them again");
        err->retry_after_s = 2;
        return ERR_BUSY;
    }
    if (is_stuck(flusher)) {
        err_set(
            err, ERR_BUSY,
            "profiles cannot be stored now, since writing them takes too long: send them again");
        err->retry_after_s = 5;
        return ERR_BUSY;
    }
    const bool is_first = !flusher->first;
    for (uint32_t i = 0; i < count; i++) {
        *flusher->last = &batches[i];
        flusher->last = &batches[i].next;
    }
    flusher->waiting_bytes += bytes;
    flusher->waiting_count += count;
    flusher->waiting_requests++;
    if (is_first) /* the thread sleeps without a timeout */
        pthread_cond_signal(&flusher->arrived);
    else
        wake_if_due(flusher);
    return ERR_NONE;
}

/* One flush takes all batches of a request, so all batches are done when the last one is. */
static enum err_code enqueue_and_wait(struct flusher *flusher, struct pending_batch *batches,
                                      uint32_t count, struct err *err)
{
    sem_t done;
    sem_init(&done, 0, 0);
    batches[count - 1].done = &done;
    pthread_mutex_lock(&flusher->mutex);
    enum err_code code = enqueue(flusher, batches, count, err);
    end_expectation(flusher);
    pthread_mutex_unlock(&flusher->mutex);
    while (!code && sem_wait(&done) != 0) {
    }
    sem_destroy(&done);
    return code;
}

enum err_code flusher_append(struct flusher *flusher, int64_t tenant_id, struct flush_item *items,
                             uint32_t count, int64_t deadline_ns, struct err *err)
{
    if (count == 0) {
        flusher_cancel_expected(flusher);
        return ERR_NONE;
    }
    arena_auto arena = arena_create();
    struct pending_batch *batches = arena_new(arena, struct pending_batch, count);
    const int64_t now_ns = clock_monotonic_ns();
    if (!deadline_ns)
        deadline_ns = now_ns + DEADLINE_MS * CLOCK_NS_PER_MS;
    for (uint32_t i = 0; i < count; i++) {
        const struct block_summary *summary = &items[i].summary;
        batches[i] = (struct pending_batch){.block = &items[i].block,
                                            .part = {.tenant_id = tenant_id,
                                                     .batch_id = items[i].batch_id,
                                                     .begin_ns = summary->begin_ns,
                                                     .end_ns = summary->end_ns,
                                                     .reach_ns = summary->reach_ns,
                                                     .row_count = summary->row_count,
                                                     .profile_count = summary->profile_count,
                                                     .footer_crc = summary->footer_crc,
                                                     .cut_string_count = items[i].cut_string_count,
                                                     .series = items[i].series,
                                                     .series_count = items[i].series_count},
                                            .since_ns = now_ns,
                                            .deadline_ns = deadline_ns};
    }
    enum err_code code = enqueue_and_wait(flusher, batches, count, err);
    for (uint32_t i = 0; i < count && !code; i++) {
        items[i].is_duplicate = batches[i].part.state == CATALOGUE_DUPLICATE;
        if (batches[i].err.code) {
            *err = batches[i].err;
            code = err->code;
        }
    }
    return code;
}
