/*
 * symbol_sweep: splits overlapping ranges of addresses into disjoint pieces in ascending order.
 *
 * Where several ranges overlap, the one with the lowest index in the array wins. Ranges are sorted
 * by radix sort, in three passes over eight bytes per range; sorted ranges need no pass. Then a
 * heap holds the ranges that cover the current position, and each piece costs one heap operation.
 * Threads: a sweep belongs to one thread.
 */
#ifndef LIB_SYMBOLS_SYMBOL_SWEEP_H
#define LIB_SYMBOLS_SYMBOL_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct symbol_range {
    uint64_t begin;
    uint32_t bytes; /* at least 1 */
    uint32_t node;
    uint32_t file;
    uint32_t line;
};

struct symbol_piece {
    uint64_t begin;
    uint64_t end;
    uint32_t number; /* index of the range */
};

struct symbol_sweep {
    const struct symbol_range *ranges;
    uint64_t *keys; /* (begin - first) << 24 | number */
    uint64_t first; /* the lowest begin */
    uint64_t position;
    /* ranges that cover position, lowest index on top; ended ranges below the top are removed
     * lazily */
    uint32_t *heap;
    uint32_t count;
    uint32_t next; /* index of the next key, whose range is not in the heap yet */
    uint32_t heap_count;
    uint32_t heap_capacity;
};

/* ranges is borrowed: at most SYMBOL_RANGE_MAX_COUNT ranges whose starts are within 2^32 of each
 * other. */
void symbol_sweep_init(struct symbol_sweep *sweep, const struct symbol_range *ranges,
                       uint32_t count);
void symbol_sweep_fini(struct symbol_sweep *sweep);
/* Returns false after the last piece. Consecutive pieces may belong to the same range. */
bool symbol_sweep_next(struct symbol_sweep *sweep, struct symbol_piece *ret_piece);

#endif
