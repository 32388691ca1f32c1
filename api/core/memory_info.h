/*
 * memory_info: the memory of the host, and the default of each memory limit of the server.
 *
 * Half of the host's memory, but at most 384 MiB, is for what has no limit of its own: PostgreSQL,
 * code, threads, and the small memory of requests that no budget counts. The limits below divide
 * the rest, so that all of them can be used at once. Threads: any.
 */
#ifndef API_CORE_MEMORY_INFO_H
#define API_CORE_MEMORY_INFO_H

#include <stdint.h>

/* Physical memory, or the limit of the control group (version 1 or 2) of this process if that is
 * less. */
uint64_t memory_info_total_bytes(void);

/* memory_info_total_bytes() / divisor, but at least low and at most high. */
uint64_t memory_info_part_bytes(uint64_t divisor, uint64_t low, uint64_t high);

enum memory_limit {
    MEMORY_HEAVY,         /* --max-heavy-memory */
    MEMORY_QUERIES,       /* --max-query-memory */
    MEMORY_MERGES,        /* --max-merge-memory; a merge takes as much again for its result */
    MEMORY_PROFILE_CACHE, /* --profile-cache-bytes */
    MEMORY_BLOCK_CACHE,   /* --block-cache-bytes */
    MEMORY_BUFFERS, /* --max-buffered-bytes: for request bodies, and as much again for responses */
    MEMORY_QUEUES,  /* the bodies of requests for each kind of worker threads */
    MEMORY_LIMIT_COUNT
};

/* The default of a limit on this host. */
uint64_t memory_info_limit_bytes(enum memory_limit limit);
/* The same on a host with total_bytes. */
uint64_t memory_info_limit_of(enum memory_limit limit, uint64_t total_bytes);

#endif
