#include "lib/base/arena.h"

#include "lib/base/alloc_size.h"
#include "lib/base/chunk_pool.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CHUNK_BYTES = 4096, LARGEST_CHUNK_BYTES = 1 << 20 };

struct arena_clean {
    struct arena_clean *next;
    void (*clean)(void *object);
    void *object;
};

struct arena {
    struct chunk *chunks; /* the first one is being filled */
    struct arena_clean *cleans;
    size_t next_chunk_bytes;
    size_t total_bytes;
};

struct arena *arena_create(void)
{
    struct arena *arena = mem_new(struct arena, 1);
    arena->next_chunk_bytes = FIRST_CHUNK_BYTES;
    arena->total_bytes = sizeof(*arena);
    return arena;
}

void arena_destroy(struct arena *arena)
{
    if (!arena)
        return;
    for (struct arena_clean *clean = arena->cleans; clean; clean = clean->next)
        clean->clean(clean->object);
    for (struct chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        chunk_free(chunk);
    }
    mem_free(arena);
}

/* A chunk for one large object is inserted after the one being filled, whose space stays in use. */
static struct chunk *add_chunk(struct arena *arena, size_t size)
{
    size_t chunk_bytes = arena->next_chunk_bytes - sizeof(struct chunk);
    bool is_large = size > chunk_bytes / 4;
    if (is_large)
        chunk_bytes = size;
    else if (arena->next_chunk_bytes < LARGEST_CHUNK_BYTES)
        arena->next_chunk_bytes *= 2;
    size_t total;
    if (__builtin_add_overflow(chunk_bytes, sizeof(struct chunk), &total))
        alloc_failed(SIZE_MAX);
    struct chunk *chunk = chunk_take(total);
    arena->total_bytes += chunk->size + sizeof(*chunk);
    if (is_large && arena->chunks) {
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    } else {
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    return chunk;
}

void *arena_alloc_raw(struct arena *arena, size_t count, size_t size)
{
    size_t wanted = alloc_size(count, size);
    size_t rounded;
    if (__builtin_add_overflow(wanted, alignof(max_align_t) - 1, &rounded))
        alloc_failed(SIZE_MAX);
    rounded &= ~(alignof(max_align_t) - 1);
    struct chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < rounded)
        chunk = add_chunk(arena, rounded);
    void *memory = chunk->data + chunk->used;
    chunk->used += rounded;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    void *memory = arena_alloc_raw(arena, count, size);
    return memset(memory, 0, count * size);
}

void *arena_grow(struct arena *arena, const void *array, size_t *capacity, size_t wanted,
                 size_t size, size_t max)
{
    const size_t grown = vec_grow_capacity(*capacity, wanted, size, max);
    void *copy = arena_alloc_raw(arena, grown, size);
    if (*capacity)
        memcpy(copy, array, *capacity * size);
    *capacity = grown;
    return copy;
}

char *arena_strndup(struct arena *arena, const void *data, size_t size)
{
    char *copy = arena_alloc_raw(arena, alloc_size(size, 1) + 1, 1);
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = arena_alloc_raw(arena, (size_t)(size < 0 ? 0 : size) + 1, 1);
    text[0] = '\0';
    if (size > 0)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

size_t arena_bytes(const struct arena *arena)
{
    return arena->total_bytes;
}

void arena_on_destroy(struct arena *arena, void (*clean)(void *object), void *object)
{
    struct arena_clean *entry = arena_new(arena, struct arena_clean, 1);
    *entry = (struct arena_clean){.next = arena->cleans, .clean = clean, .object = object};
    arena->cleans = entry;
}

static void destroy_adopted(void *child)
{
    arena_destroy(child);
}

void arena_adopt(struct arena *parent, struct arena *child)
{
    arena_on_destroy(parent, destroy_adopted, child);
    parent->total_bytes += child->total_bytes;
}
