#include "api/ops/scrub_metrics.h"

#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <stdio.h>

static double read_number(void *context)
{
    return (double)atomic_load((atomic_int_least64_t *)context);
}

void scrub_metrics_register(struct scrub_metrics *scrub, struct server *server)
{
    struct metrics *metrics = server->metrics;
    char labels[64];
    for (int i = 0; i < INTEGRITY_KIND_COUNT; i++) {
        snprintf(labels, sizeof(labels), "kind=\"%s\"",
                 integrity_kind_name((enum integrity_kind)i));
        scrub->objects[i] = metrics_counter(metrics, "perfolio_scrub_objects_total", labels,
                                            "Stored objects that the scrub has read.");
    }
    scrub->bytes =
        metrics_counter(metrics, "perfolio_scrub_bytes_total", "",
                        "Bytes of stored objects that the scrub has read and found intact.");
    for (int i = 0; i < STORE_PROBLEM_COUNT; i++) {
        snprintf(labels, sizeof(labels), "problem=\"%s\"",
                 object_verify_problem_name((enum store_problem)i));
        metrics_gauge(metrics, "perfolio_object_problems", labels,
                      "Stored objects that the scrub has found damaged or lost, of all servers.",
                      read_number, &scrub->problems[i]);
    }
    metrics_gauge(metrics, "perfolio_scrub_last_pass_timestamp_seconds", "",
                  "When a scrub of all stored objects was last complete; 0: never.", read_number,
                  &scrub->last_ended_s);
    atomic_store(&scrub->due_s,
                 clock_wall_ns() / CLOCK_NS_PER_S + server->settings->scrub_period_s);
    metrics_gauge(
        metrics, "perfolio_scrub_due_timestamp_seconds", "",
        "When the next pass must be complete: a period after the last complete pass began.",
        read_number, &scrub->due_s);
    metrics_gauge(metrics, "perfolio_scrub_paused", "",
                  "1 while the scrub is paused by an operator.", read_number, &scrub->is_paused);
}

void scrub_metrics_count(struct scrub_metrics *scrub, enum integrity_kind kind,
                         const struct object_verify_result *result)
{
    metric_add(scrub->objects[kind], (int64_t)object_verify_objects(result));
    metric_add(scrub->bytes, (int64_t)result->byte_count);
}

enum err_code scrub_metrics_refresh(struct scrub_metrics *scrub, struct server *server,
                                    struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, PG_NO_TENANT,
        "SELECT is_paused, coalesce(extract(epoch FROM last_ended_at), 0)::bigint,"
        " (SELECT count(*) FROM object_problem WHERE problem = 'broken'),"
        " (SELECT count(*) FROM object_problem WHERE problem = 'unreadable'),"
        " (SELECT count(*) FROM object_problem WHERE problem = 'missing'),"
        " (SELECT count(*) FROM object_problem WHERE problem = 'differs'),"
        " extract(epoch FROM coalesce(last_started_at, started_at, next_pass_at))::bigint + $1"
        " FROM scrub",
        arena, &rows, err, PG_I64(server->settings->scrub_period_s));
    if (code || pg_row_count(rows) == 0)
        return code;
    atomic_store(&scrub->is_paused, pg_get_bool(rows, 0, 0));
    atomic_store(&scrub->last_ended_s, pg_get_i64(rows, 0, 1));
    atomic_store(&scrub->problems[STORE_PROBLEM_BROKEN], pg_get_i64(rows, 0, 2));
    atomic_store(&scrub->problems[STORE_PROBLEM_UNREADABLE], pg_get_i64(rows, 0, 3));
    atomic_store(&scrub->problems[STORE_PROBLEM_MISSING], pg_get_i64(rows, 0, 4));
    atomic_store(&scrub->problems[STORE_PROBLEM_DIFFERS], pg_get_i64(rows, 0, 5));
    atomic_store(&scrub->due_s, pg_get_i64(rows, 0, 6));
    return ERR_NONE;
}
