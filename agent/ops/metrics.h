/*
 * metrics: the counts of the agent in the text format of Prometheus. Threads: any.
 */
#ifndef AGENT_OPS_METRICS_H
#define AGENT_OPS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

struct agent_counts;
struct buf;
struct profile_uploader_counts;
struct symbol_uploader_counts;
struct spool_counts;

struct metrics {
    const struct agent_counts *agent;
    const struct spool_counts *spool;
    const struct profile_uploader_counts *uploader;
    const struct symbol_uploader_counts *symbols;
    uint64_t lost_batches; /* batches that could not be encoded or added to the spool */
    bool is_offline;       /* nothing is sent from the spool */
};

void metrics_append(const struct metrics *metrics, struct buf *text);

#endif
