/*
 * record_summary: says at the end of a recording what it was, and what is missing in it and why.
 * Threads: one.
 */
#ifndef CLI_RECORD_RECORD_SUMMARY_H
#define CLI_RECORD_RECORD_SUMMARY_H

#include "agent/agent.h"

struct terminal;

struct record_summary {
    const struct agent_counts *counts;
    uint32_t frequency_hz;
    bool has_waits;
    bool is_full; /* it ended early */
};

void record_summary_say(struct terminal *terminal, const struct record_summary *summary);

#endif
