/*
 * long_string: strings of profiles that are longer than a limit are cut.
 *
 * One long name costs memory in every query of its window. A cut string is the longest prefix that
 * fits and ends at a UTF-8 boundary, followed by '#' and 32 hexadecimal digits, the first half of
 * the SHA-256 of the whole string, so that different strings stay different. Decoders cut strings
 * before they intern them, so that equal strings still have one index. Threads: any.
 */
#ifndef LIB_PROFILE_LONG_STRING_H
#define LIB_PROFILE_LONG_STRING_H

#include "lib/base/buf.h"

#include <stdint.h>

struct arena;

enum {
    /* Names of C++ templates have several KiB, and the longest known ones about 10 KiB. */
    LONG_STRING_DEFAULT_BYTES = 16 << 10,
    LONG_STRING_LEAST_BYTES = 256
};

/*
 * Returns text itself where it has at most max_bytes, else a copy in arena that has at most
 * max_bytes, and then adds 1 to *cut_count. max_bytes is at least LONG_STRING_LEAST_BYTES.
 */
struct span long_string_cut(struct arena *arena, struct span text, size_t max_bytes,
                            uint32_t *cut_count);

#endif
