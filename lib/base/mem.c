#include "lib/base/mem.h"

#include "lib/base/alloc_size.h"
#include "lib/base/chunk_pool.h"

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_CHUNK_BYTES = 4096 }; /* buffers of this size and more are in a chunk */

void *mem_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        alloc_failed(alloc_size(count, size));
    return memory;
}

void *mem_resize(void *memory, size_t count, size_t size)
{
    size_t total = alloc_size(count, size);
    void *resized = realloc(memory, total ? total : 1);
    if (!resized)
        alloc_failed(total);
    return resized;
}

void mem_free(void *memory)
{
    free(memory);
}

/* The chunk that contains buffer, or NULL: buffers of BUFFER_CHUNK_BYTES and more are in a
 * chunk. */
static struct chunk *chunk_of(void *buffer, size_t bytes)
{
    if (!buffer || bytes < BUFFER_CHUNK_BYTES)
        return NULL;
    void *header = (unsigned char *)buffer - offsetof(struct chunk, data);
    return header;
}

void *mem_grow_buffer(void *buffer, size_t used, size_t *bytes, size_t wanted)
{
    struct chunk *before = chunk_of(buffer, *bytes);
    if (wanted < BUFFER_CHUNK_BYTES) {
        *bytes = wanted;
        return mem_resize(buffer, wanted, 1);
    }
    size_t total;
    if (__builtin_add_overflow(wanted, sizeof(struct chunk), &total))
        alloc_failed(SIZE_MAX);
    struct chunk *chunk;
    if (before && before->size >= CHUNK_LARGEST_POOLED_BYTES) { /* mremap moves pages, no copy */
        chunk = chunk_resize(before, total);
    } else {
        chunk = chunk_take(total);
        if (used)
            memcpy(chunk->data, buffer, used);
        mem_free_buffer(buffer, *bytes);
    }
    *bytes = chunk->size;
    return chunk->data;
}

void mem_free_buffer(void *buffer, size_t bytes)
{
    struct chunk *chunk = chunk_of(buffer, bytes);
    if (chunk)
        chunk_free(chunk);
    else
        free(buffer);
}

void mem_trim(void)
{
    chunk_pool_clear();
    malloc_trim(0);
}

char *mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(mem_alloc(size, 1), text, size);
}
