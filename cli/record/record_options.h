/*
 * record_options: the options of `perfolio record` and the checks of their combinations.
 */
#ifndef CLI_RECORD_RECORD_OPTIONS_H
#define CLI_RECORD_RECORD_OPTIONS_H

#include "agent/agent.h"
#include "cli/upload.h"
#include "lib/input/options.h"

struct cli;

enum {
    RECORD_DEFAULT_HZ = 99, /* not 100: sampling in step with a periodic task would always hit the
                               same point of it */
    RECORD_TARGETS_MAX = 64,
};
#define RECORD_DEFAULT_FILE "profile.pb.gz"

struct record_options {
    struct cli *cli;
    uint32_t targets[RECORD_TARGETS_MAX]; /* process numbers */
    uint32_t target_count;
    char **command; /* NULL: none */
    double seconds; /* 0: until the command or the user ends the recording */
    uint32_t frequency_hz;
    enum event_kind event;
    double off_cpu_fraction; /* 0: off-CPU time is not recorded */
    int64_t min_off_cpu_ns;
    const char *output; /* NULL: no file is written */
    bool is_all;
    bool is_shared;
    bool is_opened;
    bool is_json;
    bool is_forced;         /* --force: also on kernels that are known to hang */
    bool has_no_tables;     /* --frame-pointers */
    bool has_bounded_loops; /* --bounded-loops */
    bool is_unnamed;        /* --no-names */
    bool has_progress;      /* --progress */
    bool is_wall;
    bool is_live; /* --top */
    struct upload_settings settings;
};

/* Its values are a struct record_options. Its check sets the defaults of off_cpu_fraction (--wall),
 * seconds and output. */
extern const struct option_table record_options_table;

/* Whether a profile of all samples is written or shared at the end. */
static inline bool record_options_have_profile(const struct record_options *options)
{
    return options->output || options->is_shared;
}

#endif
