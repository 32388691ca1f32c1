/*
 * unwind_table: how to unwind the code of one ELF file, as compact rows (bpf/unwind_format.h).
 *
 * A table is built from .eh_frame or .debug_frame and from Go's own table, in one pass in ascending
 * order. It takes about 3 bytes per row and 4 per 256 bytes of code. Rules are numbered within the
 * table; unwind_maps.h gives them numbers of their own when the table is copied. Immutable once
 * built: any thread may read it.
 */
#ifndef AGENT_UNWIND_UNWIND_TABLE_H
#define AGENT_UNWIND_UNWIND_TABLE_H

#include "agent/unwind/eh_frame.h"

enum {
    UNWIND_TABLE_CHUNKS_MAX = 1024,    /* 16 GiB of addresses; functions beyond are left out */
    UNWIND_TABLE_BYTES_MAX = 64 << 20, /* further chunks are left out */
    UNWIND_TABLE_RULES_MAX = 60000,    /* their numbers have 16 bits */
    /* As many as fit a shard together with the index for 16 MiB. */
    UNWIND_TABLE_CHUNK_ROWS_MAX = (UNWIND_SHARD_BYTES - (288 << 10)) / 3,
    UNWIND_TABLE_GAP_BYTES = 15, /* padding between functions that gets no row of its own */
};

struct unwind_table_chunk {
    uint32_t first_block;
    uint32_t block_count;
    uint32_t row_count;
    uint32_t *first_rows; /* [block_count + 1] */
    uint16_t *rules;      /* [row_count]: numbers within the table */
    uint8_t *addresses;   /* [row_count]: the low 8 bits */
};

struct unwind_table_facts {
    struct eh_frame_facts frames;
    uint32_t go_function_count; /* from Go's own table */
    uint32_t row_count;
    uint32_t rule_count;
    uint32_t chunk_count;
    uint32_t left_out_count;               /* functions or rows without space */
    uint64_t bytes;                        /* size of rows and index */
    uint32_t stop_rows[UNWIND_STOP_COUNT]; /* rows that stop, by reason */
};

struct unwind_table {
    uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
    uint64_t start;   /* ELF address of the start of the first chunk */
    struct unwind_table_chunk *chunks;
    struct cfi_rule *rules; /* [facts.rule_count]; the first UNWIND_RULE_FIXED_COUNT are fixed */
    struct unwind_table_facts facts;
};

/*
 * Builds the table of the file behind fd; path is for messages only. The caller keeps fd and
 * destroys the table. Functions for which the budget (NULL: no limit) does not suffice are left
 * out; those of .eh_frame are counted as EH_FRAME_TOO_MUCH. Errors: ERR_NOT_FOUND (the file has
 * none of these tables: frame pointers only), ERR_UNSUPPORTED, ERR_INVALID, ERR_TOO_LARGE, ERR_IO.
 */
enum err_code unwind_table_build(int fd, const char *path, struct read_budget *budget,
                                 struct unwind_table **ret_table, struct err *err) MUST_USE;
/* The start and the number of chunks that the table of a file will have, from its headers only.
 * Errors: as above. */
enum err_code unwind_table_plan(int fd, const char *path, uint64_t *ret_start,
                                uint32_t *ret_chunk_count, struct err *err) MUST_USE;
void unwind_table_destroy(struct unwind_table *table); /* NULL is a no-op */

/* The rule that holds at an ELF address; that of UNWIND_RULE_NONE if the table does not cover it.
 */
const struct cfi_rule *unwind_table_find(const struct unwind_table *table, uint64_t address);

/* Calls row for every row, ascending. */
void unwind_table_each(const struct unwind_table *table, cfi_row_function *row, void *context);

/* The size of first_rows, rules and addresses, rounded up to 8; about the size in a shard too. */
static inline uint64_t unwind_table_chunk_bytes(const struct unwind_table_chunk *chunk)
{
    uint64_t bytes = 4 * ((uint64_t)chunk->block_count + 1) + 3 * (uint64_t)chunk->row_count;
    return (bytes + 7) & ~(uint64_t)7;
}

#endif
