/*
 * otlp_indexes: packed varints that are small, as the locations of stacks are: most of a request.
 *
 * Two ways, which give the same: otlp_indexes_read_portable and one of 128-bit vectors (SSE4.1),
 * chosen at run time. Nearly all numbers have one or two bytes, in no order that a processor could
 * foresee. The portable way takes four at a time without a branch, 6 cycles each; the other looks
 * up how eight bytes fall apart, 2 cycles each. Its table costs a few microseconds to make, once
 * for a request that has thousands of them. Threads: a table is immutable. Private to the files
 * lib/profile/otlp_*.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_INDEXES_H
#define LIB_PROFILE_OTLP_OTLP_INDEXES_H

#include "lib/base/buf.h"

enum {
    OTLP_INDEXES_SLACK = 8,      /* entries behind the last one that may be written to */
    OTLP_INDEXES_WORTH_IT = 4096 /* of so many numbers the table is */
};

/* How eight bytes fall apart whose highest bits are the index's. */
struct otlp_indexes {
    uint8_t shuffles[256][16]; /* the bytes of each number, 0x80: none */
    uint8_t counts[256];       /* whole numbers of one or two bytes before any other */
    uint8_t sizes[256];        /* their bytes */
};

/* Whether this processor can use it. */
bool otlp_indexes_can(void);
void otlp_indexes_init(struct otlp_indexes *table);

/*
 * Numbers below limit from bytes to entry on; returns behind the last one, or NULL where one is not
 * below or cut short. There is room for them and OTLP_INDEXES_SLACK more.
 */
uint32_t *otlp_indexes_read(const struct otlp_indexes *table, struct span bytes, uint32_t *entry,
                            uint64_t limit);
uint32_t *otlp_indexes_read_portable(struct span bytes, uint32_t *entry, uint64_t limit);

#endif
