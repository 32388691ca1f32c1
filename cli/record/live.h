/*
 * live: what a recording has so far, on standard output once a second: functions by what they cost
 * themselves and with all that they call, since the beginning.
 *
 * On a terminal it takes the whole screen and ends when q is typed; whatever ends the process gives
 * the screen back. Elsewhere it writes one table after the other. The last one stays on either.
 * Names are looked for in a thread of its own, so that the recording does not wait for them.
 * Threads: all functions are of one.
 */
#ifndef CLI_RECORD_LIVE_H
#define CLI_RECORD_LIVE_H

#include "lib/base/err.h"

#include <stdbool.h>

struct cli;
struct kept_files;
struct live;
struct window_result;

/* files: where names are looked for, too, and borrowed; NULL: nowhere. Handles: ERR_IO. */
enum err_code live_start(const struct cli *cli, struct kept_files *files, struct live **ret_live,
                         struct err *err) MUST_USE;
/* Gives the screen back, and shows all that was given. NULL is a no-op. */
void live_stop(struct live *live);

/* What was sampled since the last time; live frees it. */
void live_give(struct live *live, const struct window_result *slice);
/* Somebody typed q, or nobody reads any more. */
bool live_is_ended(const struct live *live);

#endif
