/*
 * alloc_size: computes the size of an allocation, and ends the process when memory runs out.
 * Private to mem.c, arena.c and chunk_pool.c.
 */
#ifndef LIB_BASE_ALLOC_SIZE_H
#define LIB_BASE_ALLOC_SIZE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the process: no caller could go on without memory. */
static inline _Noreturn void alloc_failed(size_t size)
{
    fprintf(stderr, "level=error msg=\"out of memory\" bytes=%zu\n", size);
    abort();
}

/* count * size bytes; ends the process on overflow. */
static inline size_t alloc_size(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        alloc_failed(SIZE_MAX);
    return total;
}

#endif
