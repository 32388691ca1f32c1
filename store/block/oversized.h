/*
 * oversized: blocks whose strings take far more memory than their rows justify.
 *
 * A request can bring thousands of long names for one sample, and each query whose window contains
 * that sample would have to hold them all. Blocks of ordinary profiles have some hundred bytes of
 * strings per row, and less once they are merged. Strings of frames of an oversized block are read
 * only with its stacks. A query that reads stacks and lacks the memory leaves such blocks out,
 * reports them and computes the rest (store/query/scan.h). A merge merges oversized blocks only
 * with each other, so that a query that leaves them out loses no other profiles. Private to store/.
 */
#ifndef STORE_BLOCK_OVERSIZED_H
#define STORE_BLOCK_OVERSIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct block;

enum {
    OVERSIZED_ROW_BYTES = 4 << 10,     /* strings per row: more is out of proportion */
    OVERSIZED_QUERY_BYTES = 1 << 20,   /* smaller blocks are never left out */
    OVERSIZED_MERGE_BYTES = 8 << 20,   /* smaller ones are merged like all others */
    OVERSIZED_MERGED_BYTES = 64 << 20, /* strings of all oversized blocks of one merge */
    OVERSIZED_QUERY_PART = 4 /* all oversized blocks together may take 1/4 of a query's memory */
};

/* Reports whether strings of so many bytes are out of proportion to the rows; below least_bytes
 * they never are. */
static inline bool oversized_is(size_t string_bytes, uint64_t row_count, size_t least_bytes)
{
    return string_bytes >= least_bytes && string_bytes / OVERSIZED_ROW_BYTES > row_count;
}

bool oversized_in_query(const struct block *block);
bool oversized_in_merge(const struct block *block);

/* Describes a block in arena, for example "9.4 MiB for 5 samples of cpu{service_name="api"} and 2
 * more series": its first series, cut to a length that fits into a message. */
const char *oversized_describe(struct arena *arena, const struct block *block, size_t bytes);

#endif
