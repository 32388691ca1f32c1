#include "store/block/bitpack.h"

#include "lib/base/mem.h"
#include "lib/base/sanitizers.h"

#include <assert.h>

enum { LANES = 8, ROWS = BITPACK_RUN / LANES, HEADER_BYTES = 3, BITS_MAX = 32 };

typedef uint32_t lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

#define PACK_INLINE static inline __attribute__((always_inline))

/* ---- choosing the width ---- */

struct layout {
    uint8_t width;
    uint8_t patch_count;
    uint8_t patch_bytes;
};

static unsigned bits_of(uint32_t value)
{
    return value ? 32 - (unsigned)__builtin_clz(value) : 0;
}

PACK_INLINE struct layout widest_layout(const uint32_t *values, size_t count)
{
    uint32_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= values[i];
    return (struct layout){.width = (uint8_t)bits_of(all)};
}

/* Finds the width with the fewest bytes. Starting at the width of the widest number, each step down
 * saves one bit per number and makes patches of a few more numbers. */
static struct layout choose_layout(const uint32_t *values, size_t count)
{
    unsigned count_of_bits[BITS_MAX + 1] = {0};
    for (size_t i = 0; i < count; i++)
        count_of_bits[bits_of(values[i])]++;
    unsigned widest = BITS_MAX;
    while (widest && !count_of_bits[widest])
        widest--;
    struct layout best = {.width = (uint8_t)widest};
    size_t best_bytes = (count * widest + 7) / 8;
    unsigned patched = 0;
    for (unsigned width = widest; width-- > 0;) {
        patched += count_of_bits[width + 1];
        if (patched > UINT8_MAX)
            break;
        const unsigned patch_bytes = (widest - width + 7) / 8;
        const size_t bytes = (count * width + 7) / 8 + patched * (1 + (size_t)patch_bytes);
        if (bytes < best_bytes) {
            best_bytes = bytes;
            best = (struct layout){
                .width = (uint8_t)width,
                .patch_count = (uint8_t)patched,
                .patch_bytes = (uint8_t)patch_bytes,
            };
        }
    }
    return best;
}

static uint32_t mask_of(unsigned width)
{
    return width == BITS_MAX ? UINT32_MAX : (1u << width) - 1;
}

/* ---- packing ---- */

PACK_INLINE void pack_full(uint8_t *output, const uint32_t *values, unsigned width)
{
    const uint32_t mask = mask_of(width);
    lanes word = {0};
    unsigned filled = 0;
    for (unsigned row = 0; row < ROWS; row++) {
        lanes value;
        memcpy(&value, values + (size_t)row * LANES, sizeof(value));
        value &= mask;
        word |= value << filled;
        filled += width;
        if (filled >= BITS_MAX) {
            memcpy(output, &word, sizeof(word));
            output += sizeof(word);
            filled -= BITS_MAX;
            word = filled ? value >> (width - filled) : (lanes){0};
        }
    }
}

static void pack_rest(uint8_t *output, const uint32_t *values, size_t count, unsigned width)
{
    const uint32_t mask = mask_of(width);
    uint64_t word = 0;
    unsigned filled = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)(values[i] & mask) << filled;
        for (filled += width; filled >= 8; filled -= 8, word >>= 8)
            *output++ = (uint8_t)word;
    }
    if (filled)
        *output = (uint8_t)word;
}

static void append_patches(struct buf *output, const uint32_t *values, size_t count,
                           const struct layout *layout)
{
    if (!layout->patch_count)
        return;
    const uint32_t mask = mask_of(layout->width);
    uint8_t positions[UINT8_MAX];
    uint8_t bits[UINT8_MAX * sizeof(uint32_t)];
    size_t found = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        if (values[i] <= mask)
            continue;
        positions[found++] = (uint8_t)i;
        const uint32_t above = values[i] >> layout->width;
        memcpy(bits + used, &above, sizeof(above)); /* the next patch overwrites the excess bytes */
        used += layout->patch_bytes;
    }
    assert(found == layout->patch_count);
    buf_append(output, positions, found);
    buf_append(output, bits, used);
}

static size_t packed_bytes(size_t count, unsigned width)
{
    return (count * width + 7) / 8;
}

PACK_INLINE void append_run(struct buf *output, const uint32_t *values, size_t count,
                            enum bitpack_effort effort)
{
    const struct layout layout =
        effort == BITPACK_QUICK ? widest_layout(values, count) : choose_layout(values, count);
    const size_t size = packed_bytes(count, layout.width);
    uint8_t *data = buf_reserve(output, HEADER_BYTES + size);
    if (!data)
        return;
    data[0] = layout.width;
    data[1] = layout.patch_count;
    data[2] = layout.patch_bytes;
    if (layout.width) {
        if (count == BITPACK_RUN)
            pack_full(data + HEADER_BYTES, values, layout.width);
        else
            pack_rest(data + HEADER_BYTES, values, count, layout.width);
    }
    buf_commit(output, HEADER_BYTES + size);
    append_patches(output, values, count, &layout);
}

PACK_INLINE void append_runs(struct buf *output, const uint32_t *values, size_t count,
                             enum bitpack_effort effort)
{
    for (size_t at = 0; at < count; at += BITPACK_RUN)
        append_run(output, values + at, count - at < BITPACK_RUN ? count - at : BITPACK_RUN,
                   effort);
}

void bitpack_append_u32_portable(struct buf *output, const uint32_t *values, size_t count,
                                 enum bitpack_effort effort)
{
    append_runs(output, values, count, effort);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void append_u32_avx2(struct buf *output,
                                                            const uint32_t *values, size_t count,
                                                            enum bitpack_effort effort)
{
    append_runs(output, values, count, effort);
}

void bitpack_append_u32(struct buf *output, const uint32_t *values, size_t count,
                        enum bitpack_effort effort)
{
    if (__builtin_cpu_supports("avx2"))
        append_u32_avx2(output, values, count, effort);
    else
        append_runs(output, values, count, effort);
}
#else
void bitpack_append_u32(struct buf *output, const uint32_t *values, size_t count,
                        enum bitpack_effort effort)
{
    append_runs(output, values, count, effort);
}
#endif

void bitpack_append_u64(struct buf *output, const uint64_t *values, size_t count,
                        enum bitpack_effort effort)
{
    uint32_t half[BITPACK_RUN];
    for (unsigned shift = 0; shift < 64; shift += 32) {
        for (size_t at = 0; at < count; at += BITPACK_RUN) {
            const size_t run = count - at < BITPACK_RUN ? count - at : BITPACK_RUN;
            for (size_t i = 0; i < run; i++)
                half[i] = (uint32_t)(values[at + i] >> shift);
            bitpack_append_u32(output, half, run, effort);
        }
    }
}

/* ---- unpacking ---- */

/* All but the data is a compile-time constant for one width: 32 rows of a load, two shifts and a
 * mask each. */
PACK_INLINE void unpack_row(const uint8_t *input, uint32_t *values, unsigned width, unsigned row)
{
    const unsigned bit = row * width, shift = bit % BITS_MAX;
    const uint8_t *word = input + (size_t)(bit / BITS_MAX) * sizeof(lanes);
    lanes value, next;
    memcpy(&value, word, sizeof(value));
    value >>= shift;
    if (shift + width > BITS_MAX) {
        memcpy(&next, word + sizeof(lanes), sizeof(next));
        value |= next << (BITS_MAX - shift);
    }
    value &= width == BITS_MAX ? UINT32_MAX : (1u << width) - 1;
    memcpy(values + (size_t)row * LANES, &value, sizeof(value));
}

/* A call of memset takes longer to start than these stores take for 1 KB. The compiler would make
 * one of them if it could see that the value is 0, so the asm statement hides it. */
PACK_INLINE void unpack_zeros(uint32_t *values)
{
    lanes zeros = {0};
    __asm__("" : "+m"(zeros));
    for (unsigned row = 0; row < ROWS; row++)
        memcpy(values + (size_t)row * LANES, &zeros, sizeof(zeros));
}

#if IS_SANITIZED
/*
 * The same as a loop for all widths: with sanitizers, compiling 2,000 unrolled rows takes minutes.
 */
static void unpack_full(const uint8_t *input, uint32_t *values, unsigned width)
{
    assert(width <= BITS_MAX);
    if (width == 0)
        unpack_zeros(values);
    for (unsigned row = 0; width && row < ROWS; row++)
        unpack_row(input, values, width, row);
}
#else
#define ROW(n) unpack_row(input, values, width, n)
#define ROWS_OF_4(n) ROW(n), ROW((n) + 1), ROW((n) + 2), ROW((n) + 3)
#define ROWS_OF_16(n) ROWS_OF_4(n), ROWS_OF_4((n) + 4), ROWS_OF_4((n) + 8), ROWS_OF_4((n) + 12)

PACK_INLINE void unpack_width(const uint8_t *input, uint32_t *values, const unsigned width)
{
    ROWS_OF_16(0);
    ROWS_OF_16(16);
}

#define WIDTH(n)                                                                                   \
    case n:                                                                                        \
        unpack_width(input, values, n);                                                            \
        break;
#define WIDTHS_OF_4(n) WIDTH(n) WIDTH((n) + 1) WIDTH((n) + 2) WIDTH((n) + 3)
#define WIDTHS_OF_16(n)                                                                            \
    WIDTHS_OF_4(n) WIDTHS_OF_4((n) + 4) WIDTHS_OF_4((n) + 8) WIDTHS_OF_4((n) + 12)

PACK_INLINE void unpack_full(const uint8_t *input, uint32_t *values, unsigned width)
{
    switch (width) {
    case 0:
        unpack_zeros(values);
        break;
        WIDTHS_OF_16(1)
        WIDTHS_OF_16(17)
    default:
        assert(width <= BITS_MAX);
    }
}
#endif

static void unpack_rest(const uint8_t *input, uint32_t *values, size_t count, unsigned width)
{
    const uint32_t mask = mask_of(width);
    uint64_t word = 0;
    unsigned filled = 0;
    for (size_t i = 0; i < count; i++) {
        for (; filled < width; filled += 8)
            word |= (uint64_t)*input++ << filled;
        values[i] = (uint32_t)word & mask;
        word >>= width;
        filled -= width;
    }
}

/* Patches of one size, a compile-time constant. */
PACK_INLINE bool apply_patches_of(const uint8_t *positions, unsigned count_of_patches,
                                  unsigned width, uint32_t *values, size_t count,
                                  const unsigned patch_bytes)
{
    const uint8_t *bits = positions + count_of_patches;
    bool is_sound = true;
    for (unsigned i = 0; i < count_of_patches; i++) {
        uint32_t above = 0;
        memcpy(&above, bits + (size_t)i * patch_bytes, patch_bytes);
        is_sound &= positions[i] < count;
        values[positions[i] < count ? positions[i] : 0] |= above << width;
    }
    return is_sound;
}

PACK_INLINE bool apply_patches(const uint8_t *at, const struct layout *layout, uint32_t *values,
                               size_t count)
{
    const unsigned patches = layout->patch_count, width = layout->width;
    switch (layout->patch_bytes) {
    case 1:
        return apply_patches_of(at, patches, width, values, count, 1);
    case 2:
        return apply_patches_of(at, patches, width, values, count, 2);
    case 3:
        return apply_patches_of(at, patches, width, values, count, 3);
    default:
        return apply_patches_of(at, patches, width, values, count, layout->patch_bytes);
    }
}

/* Takes a run off *rest: its layout and the bytes after the header; false when it is incomplete. */
PACK_INLINE bool cut_run(struct span *rest, size_t count, struct layout *ret_layout,
                         const uint8_t **ret_data)
{
    if (rest->size < HEADER_BYTES)
        return false;
    const struct layout layout = {rest->data[0], rest->data[1], rest->data[2]};
    if (layout.width > BITS_MAX || layout.patch_bytes > sizeof(uint32_t) ||
        (layout.patch_count && layout.width == BITS_MAX))
        return false;
    const size_t size = HEADER_BYTES + packed_bytes(count, layout.width) +
                        layout.patch_count * (1 + (size_t)layout.patch_bytes);
    if (rest->size < size)
        return false;
    *ret_layout = layout;
    *ret_data = rest->data + HEADER_BYTES;
    *rest = span_of(rest->data + size, rest->size - size);
    return true;
}

PACK_INLINE bool take_run(struct span *rest, uint32_t *values, size_t count)
{
    struct layout layout;
    const uint8_t *data;
    if (!cut_run(rest, count, &layout, &data))
        return false;
    if (count == BITPACK_RUN)
        unpack_full(data, values, layout.width);
    else
        unpack_rest(data, values, count, layout.width);
    return !layout.patch_count ||
           apply_patches(data + packed_bytes(count, layout.width), &layout, values, count);
}

PACK_INLINE bool take_runs(struct span *rest, uint32_t *values, size_t count)
{
    for (size_t at = 0; at < count; at += BITPACK_RUN) {
        if (!take_run(rest, values + at, count - at < BITPACK_RUN ? count - at : BITPACK_RUN))
            return false;
    }
    return true;
}

bool bitpack_take_u32_portable(struct span *rest, uint32_t *values, size_t count)
{
    return take_runs(rest, values, count);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static bool take_u32_avx2(struct span *rest, uint32_t *values,
                                                          size_t count)
{
    return take_runs(rest, values, count);
}

bool bitpack_take_u32(struct span *rest, uint32_t *values, size_t count)
{
    return __builtin_cpu_supports("avx2") ? take_u32_avx2(rest, values, count)
                                          : take_runs(rest, values, count);
}
#else
bool bitpack_take_u32(struct span *rest, uint32_t *values, size_t count)
{
    return take_runs(rest, values, count);
}
#endif

static bool are_patches_within(const uint8_t *positions, const struct layout *layout, size_t count)
{
    for (unsigned i = 0; i < layout->patch_count; i++) {
        if (positions[i] >= count)
            return false;
    }
    return true;
}

bool bitpack_skip_u32(struct span *rest, size_t count, bool *ret_are_zeros)
{
    *ret_are_zeros = true;
    for (size_t at = 0; at < count; at += BITPACK_RUN) {
        const size_t run = count - at < BITPACK_RUN ? count - at : BITPACK_RUN;
        struct layout layout;
        const uint8_t *data;
        if (!cut_run(rest, run, &layout, &data) ||
            (run < BITPACK_RUN &&
             !are_patches_within(data + packed_bytes(run, layout.width), &layout, run)))
            return false;
        *ret_are_zeros &= !layout.width && !layout.patch_count;
    }
    return true;
}

bool bitpack_take_u64(struct span *rest, uint64_t *values, size_t count)
{
    uint32_t half[BITPACK_RUN];
    for (unsigned shift = 0; shift < 64; shift += 32) {
        for (size_t at = 0; at < count; at += BITPACK_RUN) {
            const size_t run = count - at < BITPACK_RUN ? count - at : BITPACK_RUN;
            if (!bitpack_take_u32(rest, half, run))
                return false;
            for (size_t i = 0; i < run; i++)
                values[at + i] = shift ? values[at + i] | (uint64_t)half[i] << 32 : half[i];
        }
    }
    return true;
}
