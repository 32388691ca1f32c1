/*
 * free_ranges: an allocator of numbers from a range: first fit, with neighbours joined. Threads:
 * one.
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

/* The numbers 0..size-1 are free. */
void free_ranges_init(struct free_ranges *ranges, uint32_t size);
void free_ranges_fini(struct free_ranges *ranges);

/* Allocates size > 0 consecutive numbers and returns the first; FREE_RANGES_NONE: no space. */
int64_t free_ranges_take(struct free_ranges *ranges, uint32_t size);
/* Frees an allocated range or a part of one. */
void free_ranges_give(struct free_ranges *ranges, uint32_t start, uint32_t size);

#endif
