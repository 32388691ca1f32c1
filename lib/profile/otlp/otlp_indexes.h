/*
 * otlp_indexes: decodes packed varints that are small, such as the locations of stacks, which are
 * most of a request.
 *
 * There are two implementations with the same result: a portable one and one with 128-bit vectors
 * (SSE4.1), chosen at run time. Nearly all numbers have one or two bytes, in an order that branch
 * prediction cannot learn. The portable one decodes four numbers at a time without branches, 6
 * cycles each. The vector one looks up how eight bytes split into numbers, 2 cycles each. Building
 * its table takes a few microseconds, once per request that has thousands of numbers. Threads: a
 * table is immutable. Private to lib/profile/otlp/.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_INDEXES_H
#define LIB_PROFILE_OTLP_OTLP_INDEXES_H

#include "lib/base/span.h"

enum {
    OTLP_INDEXES_SLACK = 8,      /* entries after the last one that may be overwritten */
    OTLP_INDEXES_WORTH_IT = 4096 /* number of varints from which the table saves time */
};

/* How eight bytes split into numbers; the index consists of their highest bits. */
struct otlp_indexes {
    uint8_t shuffles[256][16]; /* the bytes of each number, 0x80: none */
    uint8_t counts[256];       /* complete numbers of one or two bytes at the start */
    uint8_t sizes[256];        /* the size of those in bytes */
};

/* Whether this processor can run otlp_indexes_read with vectors. */
bool otlp_indexes_can(void);
void otlp_indexes_init(struct otlp_indexes *table);

/*
 * Decodes bytes to entry; all numbers must be below limit. Returns the position after the last
 * number, or NULL if one is truncated or not below limit. entry has space for all of them and
 * OTLP_INDEXES_SLACK more. Call otlp_indexes_read only if otlp_indexes_can.
 */
uint32_t *otlp_indexes_read(const struct otlp_indexes *table, struct span bytes, uint32_t *entry,
                            uint64_t limit);
uint32_t *otlp_indexes_read_portable(struct span bytes, uint32_t *entry, uint64_t limit);

#endif
