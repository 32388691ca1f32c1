/*
 * record_summary: prints, at the end of a recording, its size and which of its data are missing and
 * why.
 * Threads: one.
 */
#ifndef CLI_RECORD_RECORD_SUMMARY_H
#define CLI_RECORD_RECORD_SUMMARY_H

#include "agent/agent.h"

struct terminal;

struct record_summary {
    const struct agent_counts *counts;
    uint32_t frequency_hz;
    bool has_off_cpu; /* off-CPU intervals were recorded (--off-cpu or --wall) */
    bool is_full;     /* the recording ended early: the profile reached its maximum size */
};

void record_summary_print(struct terminal *terminal, const struct record_summary *summary);

#endif
