#include "lib/profile/long_string.h"

#include "lib/base/arena.h"
#include "lib/base/digest.h"

#include <assert.h>

enum { HASH_BYTES = 16, MARK_BYTES = 1 + 2 * HASH_BYTES, UTF8_MORE_BYTES = 3 };

/* A prefix of text with at most size bytes, without an incomplete UTF-8 character. */
static size_t prefix_size(struct span text, size_t size)
{
    for (size_t back = 0; back <= UTF8_MORE_BYTES; back++) {
        if ((text.data[size - back] & 0xc0) != 0x80)
            return size - back;
    }
    return size;
}

struct span long_string_cut(struct arena *arena, struct span text, size_t max_bytes,
                            uint32_t *cut_count)
{
    assert(max_bytes >= LONG_STRING_MIN_BYTES);
    if (text.size <= max_bytes)
        return text;
    uint8_t hash[DIGEST_BYTES];
    const size_t size = prefix_size(text, max_bytes - MARK_BYTES);
    char *cut = arena_alloc_raw(arena, size + MARK_BYTES + 1, 1);
    digest_sha256(text, hash);
    memcpy(cut, text.data, size);
    cut[size] = '#';
    digest_hex(span_of(hash, HASH_BYTES), cut + size + 1);
    *cut_count += 1;
    return span_of(cut, size + MARK_BYTES);
}
