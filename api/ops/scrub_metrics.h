/*
 * scrub_metrics: the metrics of the scrub (api/ops/scrub.h): what this server has read, and the
 * problems and times of all servers, which are rows.
 *
 * Threads: one calls these functions; the metrics are read by any.
 */
#ifndef API_OPS_SCRUB_METRICS_H
#define API_OPS_SCRUB_METRICS_H

#include "api/ops/object_verify.h"

#include <stdatomic.h>

struct metric;
struct server;

struct scrub_metrics {
    struct metric *objects[INTEGRITY_KIND_COUNT];
    struct metric *bytes;
    atomic_int_least64_t problems[STORE_PROBLEM_COUNT];
    atomic_int_least64_t last_ended_s;
    atomic_int_least64_t due_s;
    atomic_int_least64_t is_paused;
};

/* scrub must live as long as the metrics are read. */
void scrub_metrics_register(struct scrub_metrics *scrub, struct server *server);
/* Counts a page that was read. */
void scrub_metrics_count(struct scrub_metrics *scrub, enum integrity_kind kind,
                         const struct object_verify_result *result);
/* Reads the rows. Errors: ERR_DATABASE, ERR_BUSY. */
enum err_code scrub_metrics_refresh(struct scrub_metrics *scrub, struct server *server,
                                    struct err *err) MUST_USE;

#endif
