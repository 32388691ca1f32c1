/*
 * no_sample: why a recording has no sample, in words. Threads: any.
 */
#ifndef CLI_RECORD_NO_SAMPLE_H
#define CLI_RECORD_NO_SAMPLE_H

#include "agent/agent.h"

struct no_sample {
    char **command;        /* NULL: it was none */
    uint32_t target_count; /* processes that were named; 0 without a command: all were recorded */
    uint32_t frequency_hz;
    enum event_kind event;
    bool is_unprivileged;
};

/* Returns ERR_NOT_FOUND. */
enum err_code no_sample_explain(const struct no_sample *recording, struct err *err) MUST_USE;

#endif
