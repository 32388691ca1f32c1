/*
 * symbol_sweep: ranges of addresses that may overlap, as pieces that do not, in ascending order.
 *
 * Where several ranges overlap, the one with the lowest number (the first in its array) has the
 * place. Sorting is by counting, three passes over eight bytes a range; ranges that come ascending
 * cost none. Then each piece costs a step in a heap of the ranges that lie over it.
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
    uint32_t number; /* of the range */
};

struct symbol_sweep {
    const struct symbol_range *ranges;
    uint64_t *keys; /* (begin - first) << 24 | number */
    uint64_t first; /* lowest begin */
    uint64_t position;
    uint32_t *heap; /* ranges over position, lowest number on top; ended ones may linger below it */
    uint32_t count;
    uint32_t next; /* key */
    uint32_t heap_count;
    uint32_t heap_capacity;
};

/* At most SYMBOL_RANGE_MAX_COUNT ranges, whose begins lie within 2^32 of each other; borrowed. */
void symbol_sweep_init(struct symbol_sweep *sweep, const struct symbol_range *ranges,
                       uint32_t count);
void symbol_sweep_fini(struct symbol_sweep *sweep);
/* False after the last. Pieces of one range may follow upon each other. */
bool symbol_sweep_next(struct symbol_sweep *sweep, struct symbol_piece *ret_piece);

#endif
