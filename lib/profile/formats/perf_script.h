/*
 * perf_script: the text output of `perf script` (tools/perf/builtin-script.c in Linux).
 *
 *   # hostname : build-7                                     header, with perf script --header
 *   comm  123/124 [002] 203265.377019:  1001001 cpu-clock:   one event; fields may be missing
 *           6f1 beta+0x12 (/apps/forks)                      its stack, leaf first
 *           789 main (/apps/forks)
 *                                                            an empty line ends it
 *
 * Each event name is a sample type; the value is the period if perf printed one, else 1. The
 * periods of cpu-clock and task-clock are nanoseconds, others are counts. comm, pid and tid become
 * labels. An address with "[unknown]" stays a location without function, the file in parentheses
 * becomes the mapping, "(inlined)" frames become inlined lines of the frame on the next line, and
 * "file:line" lines (-F +srcline) are the source position of the frame on the line before. A stack
 * on the event's own line (perf script of a record without -g) is one frame. PERF_RECORD_ lines
 * (--show-mmap-events and the like) are ignored. Lines that match nothing are skipped and counted
 * in a comment and in the profile's warning; some header lines are kept as comments. duration_ns is
 * from the first to the last event. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_PERF_SCRIPT_H
#define LIB_PROFILE_FORMATS_PERF_SCRIPT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct profile;
struct profile_limits;

enum { PERF_SCRIPT_EVENTS_MAX = 32 };

/* Whether the first line that is neither empty nor a comment nor a record is an event. A line
 * without time and event name ("comm 12") counts only if a frame follows. */
bool perf_script_detect(struct span text);

/*
 * text is needed only during the call; the caller destroys *ret_profile. limits may be NULL.
 * Errors: ERR_INVALID (no event), ERR_TOO_LARGE (a limit, or more than PERF_SCRIPT_EVENTS_MAX
 * different events).
 */
enum err_code perf_script_decode(struct span text, const struct profile_limits *limits,
                                 struct profile **ret_profile, struct err *err) MUST_USE;

#endif
