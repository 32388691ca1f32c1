/*
 * chunk_pool: chunks of memory for arenas and buffers; released chunks are kept for reuse. Private
 * to arena.c and mem.c. Threads: any.
 */
#ifndef LIB_BASE_CHUNK_POOL_H
#define LIB_BASE_CHUNK_POOL_H

#include <stdalign.h>
#include <stddef.h>

enum { CHUNK_LARGEST_POOLED_BYTES = 1 << 25 }; /* larger chunks are returned to the system */

struct chunk {
    struct chunk *next; /* free for the owner's use */
    size_t size;        /* usable bytes of data */
    size_t used;
    size_t total; /* allocated bytes; larger than size where a pooled chunk was reused */
    alignas(max_align_t) unsigned char data[];
};

/* A chunk of at least total bytes, which include the header; not zeroed. Never NULL. */
struct chunk *chunk_take(size_t total);
void chunk_free(struct chunk *chunk);
/* Grows or shrinks a chunk to total bytes, keeps its content and returns its new address. The
 * result is not in huge pages. */
struct chunk *chunk_resize(struct chunk *chunk, size_t total);
/* Returns all pooled chunks to the system. */
void chunk_pool_clear(void);

#endif
