/*
 * oversized: blocks whose strings take far more memory than their rows justify.
 *
 * A request can bring thousands of long names for one sample, and each query of that time would
 * have to hold them all. Blocks of honest profiles have some hundred bytes of strings a row, and
 * less once they are merged. So strings of frames of such a block are read only with its stacks; a
 * query that reads stacks and has not enough memory leaves such blocks out, reports them and
 * answers from the rest (store/query/scan.h); and a merge puts them together with each other alone,
 * so that they can still be left out without other profiles. Private to store/.
 */
#ifndef STORE_BLOCK_OVERSIZED_H
#define STORE_BLOCK_OVERSIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct block;

enum {
    OVERSIZED_ROW_BYTES = 4 << 10,   /* of strings a row: more is out of proportion */
    OVERSIZED_QUERY_BYTES = 1 << 20, /* smaller blocks are never left out */
    OVERSIZED_MERGE_BYTES = 8 << 20, /* smaller ones are merged as all others are */
    OVERSIZED_MERGED_BYTES =
        64 << 20,            /* of strings, that such blocks together may have to be merged */
    OVERSIZED_QUERY_PART = 4 /* of a query's memory, which such blocks may take together */
};

/* Strings of so many bytes in a block of so many rows; blocks below least_bytes never are. */
static inline bool oversized_is(size_t string_bytes, uint64_t row_count, size_t least_bytes)
{
    return string_bytes >= least_bytes && string_bytes / OVERSIZED_ROW_BYTES > row_count;
}

bool oversized_in_query(const struct block *block);
bool oversized_in_merge(const struct block *block);

/* "9.4 MiB for 5 samples of cpu{service_name="api"} and 2 more series", in arena: the first series
 * of the block, cut to a length that fits into a message. */
const char *oversized_describe(struct arena *arena, const struct block *block, size_t bytes);

#endif
