/*
 * free_ranges: which parts of a line of numbers are free; first fit, neighbours are joined.
 */
#ifndef AGENT_UNWIND_FREE_RANGES_H
#define AGENT_UNWIND_FREE_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct free_range {
    uint32_t start;
    uint32_t size;
};

struct free_ranges {
    struct free_range *list; /* ascending, never touching */
    size_t count;
    size_t capacity;
    uint32_t free_size;
};

enum { FREE_RANGES_NONE = -1 };

/* All of 0..size-1 is free. */
void free_ranges_init(struct free_ranges *ranges, uint32_t size);
void free_ranges_fini(struct free_ranges *ranges);

/* The start of size > 0 numbers that are taken now; FREE_RANGES_NONE when there are not so many in
 * a row. */
int64_t free_ranges_take(struct free_ranges *ranges, uint32_t size);
/* What was taken, or a part of it. */
void free_ranges_give(struct free_ranges *ranges, uint32_t start, uint32_t size);

#endif
