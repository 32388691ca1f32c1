/*
 * empty_recording: explains why a recording has no samples. Threads: any.
 */
#ifndef CLI_RECORD_EMPTY_RECORDING_H
#define CLI_RECORD_EMPTY_RECORDING_H

#include "agent/agent.h"

struct empty_recording {
    char **command;        /* NULL: no command */
    uint32_t target_count; /* processes named by -p; 0 without a command: all processes */
    uint32_t frequency_hz;
    enum event_kind event;
    bool is_unprivileged;
};

/* Sets the error that explains the recording, and returns ERR_NOT_FOUND. */
enum err_code empty_recording_explain(const struct empty_recording *recording,
                                      struct err *err) MUST_USE;

#endif
