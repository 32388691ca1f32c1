/*
 * format: detects the format of a profile by its content, and decodes it.
 *
 * The bytes may be raw, gzip or zstd (one layer). File names and content types are never used: the
 * decoders' detect functions examine the bytes, and files of other tools are refused with advice.
 *
 * format_list.h lists the formats; the header of each decoder names the specification.
 * Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_FORMAT_H
#define LIB_PROFILE_FORMATS_FORMAT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"
#include "lib/profile/formats/format_list.h"

struct profile;
struct profile_limits;

#define FORMAT_ENUMERATOR(id, ...) FORMAT_##id,
enum format { FORMAT_LIST(FORMAT_ENUMERATOR) FORMAT_COUNT };
#undef FORMAT_ENUMERATOR

/*
 * Decodes bytes, which are needed only during the call. The caller destroys *ret_profile. limits
 * may be NULL for the defaults; ret_format may be NULL. Errors: ERR_INVALID (malformed; the
 * message contains the position), ERR_UNSUPPORTED (no supported format; the message lists the
 * supported ones), ERR_TOO_LARGE (a limit; the message names it).
 */
enum err_code format_decode(struct span bytes, const struct profile_limits *limits,
                            enum format *ret_format, struct profile **ret_profile,
                            struct err *err) MUST_USE;

/* The stable short name in the API: "pprof", "perf-script"; "unknown" for another number. */
const char *format_name(enum format format);
/* Finds a format by its name; false when there is none. */
bool format_find(struct span name, enum format *ret_format);
/* Media type of the bytes without compression: "application/json". */
const char *format_media_type(enum format format);
/* Extension of file names without compression: ".pb", ".speedscope.json". */
const char *format_extension(enum format format);

#endif
