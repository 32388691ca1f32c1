/*
 * format: detects the format of a profile by its content, and decodes it.
 *
 * The bytes may be raw, gzip or zstd (one layer). File names and content types are never used: the
 * format is determined by the first bytes and by whether the bytes parse to the end.
 *
 *   pprof       protobuf, github.com/google/pprof proto/profile.proto
 *   folded      "a;b;c 12" lines, github.com/brendangregg/FlameGraph stackcollapse
 *   perf script text of `perf script`
 *   cpuprofile  JSON of Chrome's and Node's CPU profiler (DevTools protocol, Profiler.Profile)
 *   speedscope  JSON, github.com/jlfwong/speedscope file-format-schema
 *
 * Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_FORMAT_H
#define LIB_PROFILE_FORMATS_FORMAT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct profile;
struct profile_limits;

enum format {
    FORMAT_PPROF,
    FORMAT_FOLDED,
    FORMAT_PERF_SCRIPT,
    FORMAT_CPUPROFILE,
    FORMAT_SPEEDSCOPE,
    FORMAT_COUNT
};

/*
 * Decodes bytes, which are needed only during the call. The caller destroys *ret_profile. limits
 * may be NULL for the defaults; ret_format may be NULL. Handles: ERR_INVALID (malformed; the
 * message contains the position), ERR_UNSUPPORTED (no supported format; the message lists them),
 * ERR_TOO_LARGE (a limit; the message names it).
 */
enum err_code format_decode(struct span bytes, const struct profile_limits *limits,
                            enum format *ret_format, struct profile **ret_profile,
                            struct err *err) MUST_USE;

/* The stable short name in the API: "pprof", "folded", "perf-script", "cpuprofile",
 * "speedscope". */
const char *format_name(enum format format);
/* Finds a format by its name; false when there is none. */
bool format_find(struct span name, enum format *ret_format);
/* Content type of the expanded bytes: "application/json" and the like. */
const char *format_content_type(enum format format);
/* Extension of file names: ".pb", ".folded", ".perf.txt", ".cpuprofile", ".speedscope.json". */
const char *format_extension(enum format format);

#endif
