/*
 * live_top: the table of `record --top`, printed to standard output once per second: functions by
 * flat and cumulative cost since the start of the recording.
 *
 * On a terminal it uses the whole screen and ends when q is typed; the screen is restored however
 * the process ends, except by SIGKILL. Elsewhere it prints one table after the other. The last
 * table stays visible in both cases. An internal thread looks up names, so that the recording does
 * not wait for them. Threads: all functions belong to one thread.
 */
#ifndef CLI_RECORD_LIVE_TOP_H
#define CLI_RECORD_LIVE_TOP_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct cli;
struct mapped_files;
struct live_top;
struct window_result;

/* Begins to show the table. files is borrowed until live_top_stop, and used as by local_names.
 * NULL: addresses are not symbolized. Errors: ERR_IO. */
enum err_code live_top_start(const struct cli *cli, struct mapped_files *files,
                             struct live_top **ret_live, struct err *err) MUST_USE;
/* Restores the screen and prints the final table. NULL is a no-op. */
void live_top_stop(struct live_top *live);

/* Adds the samples since the last call. Takes ownership of the content of slice. */
void live_top_add(struct live_top *live, const struct window_result *slice);
/* Returns true after q was typed or standard output was closed; false if live is NULL. */
bool live_top_is_ended(const struct live_top *live);

#endif
