/*
 * ingest_counts: what the tenants have sent lately, in the memory of this process: samples as a
 * token bucket that fills at the tenant's rate, and the series with a profile in the last hour.
 *
 * Each server process counts for itself, and starts with full buckets and without series, so that a
 * check needs no query of the database. The counts of a tenant are shared by its requests, under
 * one mutex that is held only
 * for counting. Threads: any.
 */
#ifndef API_INGEST_INGEST_COUNTS_H
#define API_INGEST_INGEST_COUNTS_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct ingest_counts;
struct tenant_limits;

enum { INGEST_COUNTS_SERIES_S = 3600 };

/* now_ns is clock_monotonic_ns, or a test's clock. */
struct ingest_counts *ingest_counts_create(int64_t (*now_ns)(void));
void ingest_counts_destroy(struct ingest_counts *counts); /* NULL is a no-op */

/* The counts of one tenant, and its limits. */
struct ingest_counts_tenant {
    struct ingest_counts *counts;
    int64_t tenant_id;
    const struct tenant_limits *limits;
};

/* Takes samples from the bucket. Errors: ERR_RATE_LIMITED with retry_after_s, ERR_TOO_LARGE (more
 * than are ever allowed at once). */
enum err_code ingest_counts_take_samples(const struct ingest_counts_tenant *tenant, uint64_t count,
                                         struct err *err) MUST_USE;
void ingest_counts_return_samples(const struct ingest_counts_tenant *tenant, uint64_t count);

/* Series of one request that are not known to be stored (api/ingest/series_set.h). All zeros at
 * first. */
struct ingest_counts_pending {
    uint64_t *hashes;
    uint32_t count;
    uint32_t capacity;
};

/* Adds the series of these hashes to the tenant's active series, in this order, until the limit is
 * reached, and notes the pending ones. ret_has_room[i]: series i is active. Returns the number of
 * series that are not. */
uint32_t ingest_counts_see_series(const struct ingest_counts_tenant *tenant, const uint64_t *hashes,
                                  uint32_t count, bool *ret_has_room,
                                  struct ingest_counts_pending *pending);
/* Records whether the pending series were stored, and forgets them. */
void ingest_counts_settle_series(const struct ingest_counts_tenant *tenant,
                                 struct ingest_counts_pending *pending, bool are_stored);
void ingest_counts_fini_pending(struct ingest_counts_pending *pending);

#endif
