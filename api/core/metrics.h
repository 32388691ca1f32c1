/*
 * metrics: counters and gauges for Prometheus, kept in memory, written as text by GET /metrics.
 *
 * A part of the server registers its counters once, keeps the pointer and adds to it; adding is one
 * relaxed atomic operation. Gauges are read by a function when they are requested. Threads: any.
 * Registered metrics live as long as the registry.
 */
#ifndef API_CORE_METRICS_H
#define API_CORE_METRICS_H

#include "lib/base/buf.h"

#include <stdint.h>

struct metric;
struct metrics;

struct metrics *metrics_create(void);
/* NULL is a no-op. */
void metrics_destroy(struct metrics *metrics);

/* Registers a counter, or finds the one registered under the same name and labels. name is in
 * Prometheus' form ("perfolio_shares_created_total"), labels "" or "format=\"pprof\""; both are
 * copied, help is a literal. */
struct metric *metrics_counter(struct metrics *metrics, const char *name, const char *labels,
                               const char *help);
void metric_add(struct metric *metric, int64_t amount);
int64_t metric_get(const struct metric *metric);

/* Registers a gauge. read(context) returns its current value; it is called by metrics_write, on any
 * thread, and must be quick. context must live as long as the registry. */
void metrics_gauge(struct metrics *metrics, const char *name, const char *labels, const char *help,
                   double (*read)(void *context), void *context);

/* Records one completed request: counts it by method, pattern and status, and adds it to the
 * duration histogram. method and pattern are literals, the same ones for each request of a route;
 * "" and "none" if no route matched. */
void metrics_observe_request(struct metrics *metrics, const char *method, const char *pattern,
                             int status, int64_t duration_ns);

/* All metrics in Prometheus' text format 0.0.4, with the process's own RSS, CPU time and number of
 * files. */
void metrics_write(struct metrics *metrics, struct buf *buf);

#endif
