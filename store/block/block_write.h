/*
 * block_write: writes one block (store/block/block_format.h), granule by granule.
 *
 * Finished parts go to a sink, so memory is bounded by the largest granule and the dictionary.
 * Blocks of a segment are written to memory, others to an object.
 *
 * Threads: a writer belongs to one thread.
 */
#ifndef STORE_BLOCK_BLOCK_WRITE_H
#define STORE_BLOCK_BLOCK_WRITE_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdint.h>

struct batch;
struct block_writer;
struct dictionary;

/* Receives the bytes of the block in order. */
struct block_sink {
    enum err_code (*append)(void *context, struct span bytes, struct err *err);
    void *context;
};

/* The hour since 1970 of a time: the granule of a profile that begins then. */
int32_t block_hour(int64_t time_ns);

/* Creates a writer. level is zstd's; 0 (no compression) for blocks that live for seconds. */
struct block_writer *block_writer_create(int64_t tenant_id, int level, struct block_sink sink);
/* Creates a writer without a sink: the block grows in the memory of output, which is empty before
 * and until block_writer_take. The block is expected to take about expected_bytes. */
struct block_writer *block_writer_create_in(int64_t tenant_id, int level, struct buf *output,
                                            size_t expected_bytes);
/* Moves the finished block to output; of a writer without a sink. */
void block_writer_take(struct block_writer *writer, struct buf *output);
void block_writer_destroy(struct block_writer *writer); /* NULL is a no-op */

/* One profile of a granule. */
struct block_profile {
    int64_t time_ns;
    int64_t duration_ns;
    int64_t period;
    int64_t total; /* sum of its values; the writer computes it */
};

/* The rows of one granule: sorted by stack, then by ordinal; profiles by time. */
struct block_rows {
    uint32_t series;
    int32_t hour;
    uint32_t profile_count; /* at least 1 */
    uint32_t row_count;
    struct block_profile *profiles; /* the writer sets their totals */
    const uint32_t *stacks;
    const uint32_t *ordinals;   /* index of the row's profile */
    const int64_t *values;      /* none is 0; their absolute values add up to less than 2^63 */
    const uint32_t *label_sets; /* NULL: all 0 */
    const uint32_t *timestamp_counts; /* NULL: no timestamps */
    const int64_t *timestamps;        /* those of all rows */
    bool are_totals;                  /* reduced to totals (store/maintain/totals.h) */
};

/* Appends a granule; they come in order of series, then hour. Errors: what the sink returns. */
enum err_code block_writer_append(struct block_writer *writer, const struct block_rows *rows,
                                  struct err *err) MUST_USE;

struct block_summary {
    uint64_t bytes;
    uint64_t row_count;
    uint64_t profile_count;
    uint32_t granule_count;
    uint32_t series_count;
    int64_t begin_ns; /* of the first profile */
    int64_t end_ns;   /* start of the last profile */
    int64_t reach_ns; /* the latest end of a profile: its start and its duration */
    /* The checksum of the footer, which contains a random id, so it identifies the block. The
     * catalogue stores it and thereby detects another block at this place. */
    uint32_t footer_crc;
};

/* Writes the dictionary and ends the block. Errors: ERR_TOO_LARGE (a section of more than
 * BLOCK_SECTION_MAX_BYTES), what the sink returns. */
enum err_code block_writer_finish(struct block_writer *writer, const struct dictionary *dictionary,
                                  struct block_summary *ret_summary, struct err *err) MUST_USE;

/* Writes a batch as one block to output, which is empty before. Errors: ERR_TOO_LARGE (output's
 * maximum, or a limit of the dictionary). */
enum err_code block_write_batch(const struct batch *batch, int64_t tenant_id, int level,
                                struct buf *output, struct block_summary *ret_summary,
                                struct err *err) MUST_USE;

#endif
