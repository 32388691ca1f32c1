/*
 * coverage: the time that profiles cover, as disjoint spans in ascending order.
 *
 * Spans are collected with coverage_add; coverage_close then sorts and joins them. Only a closed
 * coverage may be united or read. All zeros are an empty, closed coverage. Threads: an object
 * belongs to one thread. Private to store/.
 */
#ifndef STORE_VALUES_COVERAGE_H
#define STORE_VALUES_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coverage_span {
    int64_t begin_ns;
    int64_t end_ns; /* exclusive, after begin_ns */
};

struct coverage {
    struct coverage_span *spans;
    uint32_t count;
    uint32_t capacity;
    bool is_unordered; /* a span was added that begins before the last one */
};

void coverage_fini(struct coverage *coverage);
/* Removes all spans and keeps the memory. */
void coverage_clear(struct coverage *coverage);

/* Adds [begin_ns, end_ns), or nothing when that is empty. Spans may come in any order; one that
 * begins within the last one, or where that ends, takes no memory. */
void coverage_add(struct coverage *coverage, int64_t begin_ns, int64_t end_ns);

/* Sorts the spans and joins those that overlap or are at most slack_ns apart. */
void coverage_close(struct coverage *coverage, int64_t slack_ns);

/* Adds the spans of another coverage; both are closed. Cost: the number of spans of both. */
void coverage_unite(struct coverage *coverage, const struct coverage *other);

/* The covered time within [begin_ns, end_ns). *cursor is an index of a span, 0 before the first
 * call. A caller with ascending intervals passes it on, so that all calls together look at each
 * span once. */
uint64_t coverage_within(const struct coverage *coverage, uint32_t *cursor, int64_t begin_ns,
                         int64_t end_ns);

size_t coverage_memory(const struct coverage *coverage);

#endif
