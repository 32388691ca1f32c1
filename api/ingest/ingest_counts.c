#include "api/ingest/ingest_counts.h"

#include "api/identity/tenant_limits.h"
#include "api/ingest/series_set.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <inttypes.h>
#include <pthread.h>

enum { BUCKET_COUNT = 1024, SWEEP_COUNT = 1024 };

/* The counts of one tenant's recent requests. */
struct sent {
    struct sent *next;
    int64_t tenant_id;
    int64_t used_ns;
    double samples; /* tokens in the bucket */
    struct series_set series;
};

struct ingest_counts {
    pthread_mutex_t mutex;
    struct sent *buckets[BUCKET_COUNT]; /* by tenant */
    uint32_t count;
    uint32_t sweep_count; /* at this number of tenants, idle ones are looked for */
    int64_t (*now_ns)(void);
};

struct ingest_counts *ingest_counts_create(int64_t (*now_ns)(void))
{
    struct ingest_counts *counts = mem_new(struct ingest_counts, 1);
    pthread_mutex_init(&counts->mutex, NULL);
    counts->now_ns = now_ns;
    counts->sweep_count = SWEEP_COUNT;
    return counts;
}

static void free_sent(struct sent *sent)
{
    series_set_fini(&sent->series);
    mem_free(sent);
}

void ingest_counts_destroy(struct ingest_counts *counts)
{
    if (!counts)
        return;
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        while (counts->buckets[i]) {
            struct sent *first = counts->buckets[i];
            counts->buckets[i] = first->next;
            free_sent(first);
        }
    }
    pthread_mutex_destroy(&counts->mutex);
    mem_free(counts);
}

/* A tenant that has sent nothing for that long has a full bucket and no series. */
static void drop_idle(struct ingest_counts *counts, int64_t now_ns)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        struct sent **link = &counts->buckets[i];
        while (*link) {
            struct sent *sent = *link;
            if (now_ns - sent->used_ns > INGEST_COUNTS_SERIES_S * CLOCK_NS_PER_S) {
                *link = sent->next;
                free_sent(sent);
                counts->count--;
            } else {
                link = &sent->next;
            }
        }
    }
    counts->sweep_count = counts->count * 2 > SWEEP_COUNT ? counts->count * 2 : SWEEP_COUNT;
}

/* Called with the lock held; fills the bucket up to the present. */
static struct sent *find_sent(const struct ingest_counts_tenant *tenant, int64_t now_ns)
{
    struct ingest_counts *counts = tenant->counts;
    const int64_t tenant_id = tenant->tenant_id;
    const double most = (double)tenant->limits->values[TENANT_LIMIT_SAMPLES_BURST];
    const double per_s = (double)tenant->limits->values[TENANT_LIMIT_SAMPLES_PER_SECOND];
    struct sent **bucket = &counts->buckets[(uint64_t)tenant_id % BUCKET_COUNT];
    struct sent *sent = *bucket;
    while (sent && sent->tenant_id != tenant_id)
        sent = sent->next;
    if (!sent) {
        if (counts->count >= counts->sweep_count)
            drop_idle(counts, now_ns);
        sent = mem_new(struct sent, 1);
        *sent = (struct sent){
            .next = *bucket, .tenant_id = tenant_id, .used_ns = now_ns, .samples = most};
        *bucket = sent;
        counts->count++;
    }
    sent->samples += (double)(now_ns - sent->used_ns) / (double)CLOCK_NS_PER_S * per_s;
    sent->samples = sent->samples < most ? sent->samples : most;
    sent->used_ns = now_ns;
    return sent;
}

/* ---- samples ---- */

static enum err_code refuse_samples(const struct ingest_counts_tenant *tenant, uint64_t wanted,
                                    double there, struct err *err)
{
    char limit[TENANT_LIMITS_TEXT_BYTES];
    const int64_t per_s = tenant->limits->values[TENANT_LIMIT_SAMPLES_PER_SECOND];
    double wait_s = per_s > 0 ? ((double)wanted - there) / (double)per_s : 3600;
    tenant_limits_describe(tenant->limits, TENANT_LIMIT_SAMPLES_PER_SECOND, limit);
    err_set(err, ERR_RATE_LIMITED, "Your team sends more samples than its limit: %s", limit);
    err->retry_after_s = wait_s < 1 ? 1 : wait_s < 3600 ? (int)wait_s + 1 : 3600;
    return ERR_RATE_LIMITED;
}

enum err_code ingest_counts_take_samples(const struct ingest_counts_tenant *tenant, uint64_t count,
                                         struct err *err)
{
    struct ingest_counts *counts = tenant->counts;
    const int64_t burst = tenant->limits->values[TENANT_LIMIT_SAMPLES_BURST];
    if (count > (uint64_t)burst) {
        char limit[TENANT_LIMITS_TEXT_BYTES];
        tenant_limits_describe(tenant->limits, TENANT_LIMIT_SAMPLES_BURST, limit);
        return err_set(err, ERR_TOO_LARGE,
                       "%" PRIu64 " samples are more than are ever allowed at once: %s", count,
                       limit);
    }
    pthread_mutex_lock(&counts->mutex);
    struct sent *sent = find_sent(tenant, counts->now_ns());
    const double there = sent->samples;
    const bool is_enough =
        there >= (double)count && tenant->limits->values[TENANT_LIMIT_SAMPLES_PER_SECOND] > 0;
    if (is_enough)
        sent->samples -= (double)count;
    pthread_mutex_unlock(&counts->mutex);
    return is_enough ? ERR_NONE : refuse_samples(tenant, count, there, err);
}

void ingest_counts_return_samples(const struct ingest_counts_tenant *tenant, uint64_t count)
{
    struct ingest_counts *counts = tenant->counts;
    pthread_mutex_lock(&counts->mutex);
    find_sent(tenant, counts->now_ns())->samples += (double)count;
    pthread_mutex_unlock(&counts->mutex);
}

/* ---- series ---- */

static void note_pending(struct ingest_counts_pending *pending, uint64_t hash)
{
    vec_reserve(pending->hashes, pending->capacity, pending->count + 1);
    pending->hashes[pending->count++] = hash;
}

uint32_t ingest_counts_see_series(const struct ingest_counts_tenant *tenant, const uint64_t *hashes,
                                  uint32_t count, bool *ret_has_room,
                                  struct ingest_counts_pending *pending)
{
    struct ingest_counts *counts = tenant->counts;
    const uint32_t most = (uint32_t)tenant->limits->values[TENANT_LIMIT_ACTIVE_SERIES];
    uint32_t refused_count = 0;
    pthread_mutex_lock(&counts->mutex);
    const int64_t now_ns = counts->now_ns();
    const int64_t now_s = now_ns / CLOCK_NS_PER_S + INGEST_COUNTS_SERIES_S; /* never 0 */
    struct sent *sent = find_sent(tenant, now_ns);
    for (uint32_t i = 0; i < count; i++) {
        bool is_pending;
        ret_has_room[i] = series_set_see(&sent->series, hashes[i], now_s,
                                         now_s - INGEST_COUNTS_SERIES_S, most, &is_pending);
        refused_count += !ret_has_room[i];
        if (is_pending)
            note_pending(pending, hashes[i]);
    }
    pthread_mutex_unlock(&counts->mutex);
    return refused_count;
}

void ingest_counts_settle_series(const struct ingest_counts_tenant *tenant,
                                 struct ingest_counts_pending *pending, bool are_stored)
{
    struct ingest_counts *counts = tenant->counts;
    if (!pending->count)
        return;
    pthread_mutex_lock(&counts->mutex);
    struct sent *sent = find_sent(tenant, counts->now_ns());
    for (uint32_t i = 0; i < pending->count; i++)
        series_set_settle(&sent->series, pending->hashes[i], are_stored);
    pthread_mutex_unlock(&counts->mutex);
    pending->count = 0;
}

void ingest_counts_fini_pending(struct ingest_counts_pending *pending)
{
    mem_free(pending->hashes);
    *pending = (struct ingest_counts_pending){0};
}
