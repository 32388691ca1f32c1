/*
 * settings: the options of perfolio-agent, from the command line and a file.
 *
 * One table (lib/input/options.h) describes both. The file is INI; keys of its section [agent] have
 * the names of the long options. The command line overrides the file.
 * Threads: one.
 */
#ifndef AGENT_SETTINGS_H
#define AGENT_SETTINGS_H

#include "agent/upload/server_config.h"
#include "agent/upload/symbol_uploader.h"
#include "lib/base/err_code.h"
#include "lib/profile/batch/batch_labels.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct option_table;

enum { SETTINGS_LABELS_MAX = 24, SETTINGS_VARIABLES_MAX = 32 };

#define SETTINGS_FILE "/etc/perfolio/agent.ini"

enum settings_action { SETTINGS_RUN, SETTINGS_DOCTOR, SETTINGS_SHOW_UNWIND, SETTINGS_COMPLETION };

struct settings {
    enum settings_action action;
    const char *config_file;
    struct server_config access;
    const char *spool_dir;
    uint64_t spool_max_bytes; /* SPOOL_NO_LIMIT: offline without --spool-max */
    bool is_offline;          /* batches stay in spool_dir; nothing is sent */
    const char *metrics;      /* address of /metrics; NULL: not served */
    uint32_t frequency_hz;
    uint32_t interval_s;
    double off_cpu_fraction; /* 0: off-CPU profiling is off */
    int64_t min_off_cpu_ns;
    enum symbol_policy symbols;
    bool may_send_debug_files;
    uint64_t symbols_memory_bytes;
    uint64_t memory_limit_bytes; /* 0: none */
    bool has_no_tables;
    bool has_tallies;
    bool has_bounded_loops;
    bool is_forced;
    bool is_json;         /* show-unwind prints JSON */
    const char *argument; /* show-unwind: the file; completion: the shell */
    struct batch_text_label labels[SETTINGS_LABELS_MAX];
    size_t label_count;
    struct span environment[SETTINGS_VARIABLES_MAX]; /* names */
    size_t environment_count;
    const char *relabel_file;  /* NULL: none */
    struct server_config pods; /* server NULL: pods are not read */
    const char *host_root;     /* NULL: process 1's */
};

/* All options, for completion. */
extern const struct option_table settings_options;

/* Reads the file and the command line; ends the process with status 2 on an invalid command line.
 * Texts live in arena or argv. Errors: ERR_INVALID (an invalid value in the file, or neither
 * --server nor --offline-dir is given), ERR_IO. */
enum err_code settings_read(int argc, char **argv, struct arena *arena,
                            struct settings *ret_settings, struct err *err) MUST_USE;

#endif
