/*
 * long_string: truncates strings of profiles that are longer than a limit.
 *
 * One long name costs memory in every query of its time window. A truncated string is the longest
 * prefix that fits and ends at a UTF-8 boundary, followed by '#' and 32 hexadecimal digits, the
 * first half of the SHA-256 of the whole string, so that different strings stay different. Decoders
 * truncate strings before they intern them, so that equal strings still have one index. Threads:
 * any.
 */
#ifndef LIB_PROFILE_LONG_STRING_H
#define LIB_PROFILE_LONG_STRING_H

#include "lib/base/span.h"

#include <stdint.h>

struct arena;

enum {
    /* Names of C++ templates have several KiB; the longest known ones about 10 KiB. */
    LONG_STRING_DEFAULT_BYTES = 16 << 10,
    LONG_STRING_MIN_BYTES = 256
};

/*
 * Returns text itself if it has at most max_bytes. Otherwise returns a truncated copy in arena, of
 * at most max_bytes, and adds 1 to *cut_count. max_bytes is at least LONG_STRING_MIN_BYTES.
 */
struct span long_string_cut(struct arena *arena, struct span text, size_t max_bytes,
                            uint32_t *cut_count);

#endif
