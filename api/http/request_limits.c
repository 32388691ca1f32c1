#include "api/http/request_limits.h"

#include "api/core/memory_info.h"
#include "api/core/settings.h"
#include "api/http/concurrency_limit.h"
#include "api/http/rate_limiter.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { RATE_ENTRIES = 1 << 16 };

struct request_limits *request_limits_create(const struct settings *settings, int download_threads)
{
    struct request_limits *limits = mem_new(struct request_limits, 1);
    limits->rate_limiter = rate_limiter_create(RATE_ENTRIES, clock_monotonic_ns);
    rate_limiter_set_passwords(limits->rate_limiter, settings->passwords_per_minute);
    limits->reports = concurrency_limit_create(settings->worker_threads, settings->worker_queue);
    limits->agents = concurrency_limit_create(settings->ingest_threads, settings->worker_queue);
    limits->downloads = concurrency_limit_create(download_threads, settings->worker_queue);
    limits->workers =
        concurrency_limit_create_shares(settings->worker_threads, settings->worker_queue);
    /* A queue of a pool of workers holds four times as much. */
    struct concurrency_limit *const all[] = {limits->reports, limits->agents, limits->downloads,
                                             limits->workers};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        concurrency_limit_set_waiting_bytes(all[i], memory_info_limit_bytes(MEMORY_QUEUES) / 4);
    return limits;
}

void request_limits_destroy(struct request_limits *limits)
{
    if (!limits)
        return;
    rate_limiter_destroy(limits->rate_limiter);
    concurrency_limit_destroy(limits->reports);
    concurrency_limit_destroy(limits->agents);
    concurrency_limit_destroy(limits->downloads);
    concurrency_limit_destroy(limits->workers);
    mem_free(limits);
}
