#include "store/block/row_sums.h"

#include "store/block/bitpack.h"
#include "store/block/column.h"

#include <string.h>

/* Running sums begin one number before a multiple of LANES, so that all stores but the first are
 * within one cache line. */
enum { CHUNK = BITPACK_RUN, LANES = 8, BEGIN = LANES - 1 };

typedef uint32_t lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

#define ROW_INLINE static inline __attribute__((always_inline))

/* Columns that are unpacked chunk by chunk. */
struct columns {
    struct span ordinals;
    struct span low;
    struct span high;
    bool are_narrow; /* all high halves are 0 */
};

/* The running sums of a chunk: [BEGIN + i] is the sum of the rows before row i. */
struct chunk {
    _Alignas(64) uint32_t ordinals[BEGIN + CHUNK + 1];
    _Alignas(64) uint32_t narrow[BEGIN + CHUNK + 1]; /* of values, if their sum is below 2^32 … */
    _Alignas(64) uint64_t wide[BEGIN + CHUNK + 1];   /* … and if it is not */
    bool is_narrow;
    /* The unpacked numbers of one chunk. A shorter last chunk leaves old numbers behind its end. */
    _Alignas(64) uint32_t steps[CHUNK];
    _Alignas(64) uint32_t low[CHUNK];
    _Alignas(64) uint32_t high[CHUNK];
};

/* Each lane becomes the sum of itself and the lanes before: three additions of the vector shifted
 * by 1, 2 and 4 lanes. */
ROW_INLINE void run_lanes(lanes *sums)
{
    const lanes zeros = {0};
    *sums += __builtin_shufflevector(zeros, *sums, 0, 8, 9, 10, 0, 12, 13, 14);
    *sums += __builtin_shufflevector(zeros, *sums, 0, 0, 8, 9, 0, 0, 12, 13);
    *sums += __builtin_shufflevector(zeros, *sums, 0, 0, 0, 0, 11, 11, 11, 11);
}

/* Running sums of numbers, each increased by `more`. */
ROW_INLINE void fill_running(const uint32_t *numbers, uint32_t more, uint32_t *sums)
{
    lanes before = {0};
    sums[BEGIN] = 0;
    for (unsigned i = 0; i < CHUNK; i += LANES) {
        lanes next;
        memcpy(&next, numbers + i, sizeof(next));
        next += more;
        run_lanes(&next);
        const lanes to_here = next + before;
        memcpy(sums + LANES + i, &to_here, sizeof(to_here));
        /* Only this addition depends on the previous iteration. */
        before += __builtin_shufflevector(next, next, 7, 7, 7, 7, 7, 7, 7, 7);
    }
}

ROW_INLINE bool are_small(const uint32_t *numbers)
{
    enum { SMALL = UINT32_MAX / CHUNK / 2 };
    lanes all = {0};
    for (unsigned i = 0; i < CHUNK; i += LANES) {
        lanes next;
        memcpy(&next, numbers + i, sizeof(next));
        all |= next;
    }
    uint32_t any = 0;
    for (unsigned i = 0; i < LANES; i++)
        any |= all[i];
    return any <= SMALL;
}

static void fill_wide(struct chunk *chunk, const struct columns *columns, bool are_positive,
                      uint32_t count)
{
    chunk->wide[BEGIN] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t high = columns->are_narrow ? 0 : chunk->high[i];
        const uint64_t stored = high << 32 | chunk->low[i];
        const uint64_t value = are_positive ? stored + 1 : (uint64_t)column_unzigzag(stored);
        chunk->wide[LANES + i] = chunk->wide[BEGIN + i] + value;
    }
}

ROW_INLINE void fill(struct chunk *chunk, const struct row_sums *rows, struct columns *columns,
                     uint32_t count)
{
    /* The columns were checked before (bitpack_skip_u32), so unpacking cannot fail. */
    (void)!bitpack_take_u32(&columns->ordinals, chunk->steps, count);
    (void)!bitpack_take_u32(&columns->low, chunk->low, count);
    if (!columns->are_narrow)
        (void)!bitpack_take_u32(&columns->high, chunk->high, count);
    fill_running(chunk->steps, rows->are_distinct, chunk->ordinals);
    chunk->is_narrow = columns->are_narrow && rows->are_positive && are_small(chunk->low);
    if (chunk->is_narrow)
        fill_running(chunk->low, 1, chunk->narrow);
    else
        fill_wide(chunk, columns, rows->are_positive, count);
}

/* The first row of begin <= i < end whose ordinal is not below `sought`. */
static uint32_t find(const struct chunk *chunk, uint32_t begin, uint32_t end, uint32_t zero,
                     uint32_t sought)
{
    while (begin < end) {
        const uint32_t middle = (begin + end) / 2;
        if (chunk->ordinals[LANES + middle] - zero < sought)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* The sum of the rows begin <= i < end of one entry that are in the range; zero is the running sum
 * before the entry's first ordinal. */
ROW_INLINE uint64_t sum_part(const struct chunk *chunk, const struct row_sums *rows, uint32_t begin,
                             uint32_t end, uint32_t zero)
{
    const uint32_t first = chunk->ordinals[LANES + begin] - zero;
    const uint32_t last = chunk->ordinals[BEGIN + end] - zero;
    if (first >= rows->end || last < rows->first)
        return 0;
    if (first < rows->first)
        begin = find(chunk, begin, end, zero, rows->first);
    if (last >= rows->end)
        end = find(chunk, begin, end, zero, rows->end);
    return chunk->is_narrow ? chunk->narrow[BEGIN + end] - chunk->narrow[BEGIN + begin]
                            : chunk->wide[BEGIN + end] - chunk->wide[BEGIN + begin];
}

/* The position in the entries where a chunk begins. */
struct position {
    const uint32_t *stack; /* of the entry, and its count */
    const uint32_t *count;
    uint32_t left;   /* rows of it that are not added yet; 0: the next entry begins */
    uint32_t before; /* ordinal of the previous row */
};

ROW_INLINE void add_chunk(const struct row_sums *rows, const struct chunk *chunk, uint32_t count,
                          struct position *position, int64_t *sums)
{
    for (uint32_t at = 0, end; at < count; at = end) {
        if (!position->left) {
            position->stack++;
            position->left = *++position->count;
            /* an entry's first ordinal is stored unchanged */
            position->before = 0u - rows->are_distinct;
        }
        end = position->left < count - at ? at + position->left : count;
        const uint32_t zero = chunk->ordinals[BEGIN + at] - position->before;
        const uint64_t sum = sum_part(chunk, rows, at, end, zero);
        int64_t *total = &sums[*position->stack];
        *total = (int64_t)((uint64_t)*total + sum * (uint64_t)rows->divisor);
        position->left -= end - at;
        position->before = chunk->ordinals[BEGIN + end] - zero;
    }
}

static bool open_columns(const struct row_sums *rows, struct columns *columns)
{
    struct span rest = rows->ordinals;
    bool are_zeros;
    columns->ordinals = rows->ordinals;
    columns->low = columns->high = rows->values;
    if (!bitpack_skip_u32(&rest, rows->row_count, &are_zeros) || rest.size ||
        !bitpack_skip_u32(&columns->high, rows->row_count, &are_zeros))
        return false;
    rest = columns->high;
    return bitpack_skip_u32(&rest, rows->row_count, &columns->are_narrow) && rest.size == 0;
}

ROW_INLINE void add(const struct row_sums *rows, struct columns *columns, int64_t *sums)
{
    struct chunk chunk;
    memset(chunk.steps, 0, sizeof(chunk.steps));
    memset(chunk.low, 0, sizeof(chunk.low));
    struct position position = {.stack = rows->stacks,
                                .count = rows->counts,
                                .left = rows->counts[0],
                                .before = 0u - rows->are_distinct};
    for (uint32_t left = rows->row_count; left;) {
        const uint32_t count = left < CHUNK ? left : CHUNK;
        fill(&chunk, rows, columns, count);
        add_chunk(rows, &chunk, count, &position, sums);
        left -= count;
    }
}

bool row_sums_add_portable(const struct row_sums *rows, int64_t *sums)
{
    struct columns columns;
    if (!open_columns(rows, &columns))
        return false;
    if (rows->row_count)
        add(rows, &columns, sums);
    return true;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void add_avx2(const struct row_sums *rows,
                                                     struct columns *columns, int64_t *sums)
{
    add(rows, columns, sums);
}

bool row_sums_add(const struct row_sums *rows, int64_t *sums)
{
    struct columns columns;
    if (!__builtin_cpu_supports("avx2"))
        return row_sums_add_portable(rows, sums);
    if (!open_columns(rows, &columns))
        return false;
    if (rows->row_count)
        add_avx2(rows, &columns, sums);
    return true;
}
#else
bool row_sums_add(const struct row_sums *rows, int64_t *sums)
{
    return row_sums_add_portable(rows, sums);
}
#endif
