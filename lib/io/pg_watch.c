#include "lib/io/pg_internal.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

enum {
    PROBE_MS = 1000,
    PROBE_CONNECT_MAX_MS = 10000, /* stopping the process waits for a probe */
};

/*
 * An error of the database is a reply, too, and proves that the database does not hang. As long as
 * no probe has ever got a reply, a probe that fails to connect proves nothing: the database may be
 * far away, or connect_timeout too short. It then counts as successful.
 */
static bool send_probe(void *context, int index, int64_t deadline_ms)
{
    /* Each request has a connection of the pool, whose deadline is PROBE_MS. */
    (void)index, (void)deadline_ms;
    struct pg_watch *watch = context;
    arena_auto arena = arena_create();
    struct pg_connection *connection = NULL;
    struct err err;
    if (pg_take_at_once(watch->pool, &connection, &err))
        return !atomic_load(&watch->pool->cannot_connect) || !atomic_load(&watch->has_replied);
    (void)!pg_query(connection, PG_NO_TENANT, "SELECT 1", NULL, 0, arena, NULL, &err);
    const bool has_replied = !connection->has_timed_out;
    if (has_replied)
        atomic_store(&watch->has_replied, true);
    pg_give(connection);
    return has_replied;
}

static void limit_to(int *value, int most)
{
    if (*value > most)
        *value = most;
}

static void report(void *context, bool is_open)
{
    struct pg_watch *watch = context;
    if (!is_open)
        atomic_store(&watch->recovered_ns, clock_monotonic_ns());
    if (watch->report)
        watch->report(!is_open);
}

enum err_code pg_watch_create(const char *conninfo, void (*report_change)(bool is_responding),
                              struct pg_watch **ret_watch, struct err *err)
{
    struct pg_watch *watch = mem_new(struct pg_watch, 1);
    watch->pool = pg_pool_create(conninfo, NULL, BREAKER_PROBE_REQUESTS);
    watch->pool->statement_ms = PROBE_MS;
    pg_set_connect_limits(watch->pool, PROBE_MS);
    limit_to(&watch->pool->connect_ms, PROBE_CONNECT_MAX_MS);
    limit_to(&watch->pool->connect_silence_ms, PROBE_CONNECT_MAX_MS);
    watch->report = report_change;
    const enum err_code code = breaker_create(&(struct breaker_options){.probe = send_probe,
                                                                        .probe_ms = PROBE_MS,
                                                                        .max_probe_ms = PROBE_MS,
                                                                        .report = report,
                                                                        .context = watch,
                                                                        .probes_at_start = true},
                                              &watch->breaker, err);
    if (code) {
        pg_pool_destroy(watch->pool);
        mem_free(watch);
        return code;
    }
    *ret_watch = watch;
    return ERR_NONE;
}

void pg_watch_destroy(struct pg_watch *watch)
{
    if (!watch)
        return;
    breaker_destroy(watch->breaker);
    pg_pool_destroy(watch->pool);
    mem_free(watch);
}

bool pg_watch_is_responding(const struct pg_watch *watch)
{
    return !breaker_is_open(watch->breaker);
}
