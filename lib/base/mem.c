#include "lib/base/mem.h"

#include "lib/base/sanitizers.h"

#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FIRST_CHUNK_BYTES = 4096,
    LARGEST_CHUNK_BYTES = 1 << 20,
    HUGE_BYTES = 4 << 20,
    PAGE_BYTES = 4096,
    SPARE_LOG_MIN = 12,  /* the smallest chunk that is kept, 4 KiB */
    SPARE_LOG_END = 25,  /* chunks of 32 MiB and more are returned to the system */
    SPARE_STEPS_LOG = 3, /* sizes per doubling: rounding up wastes at most an eighth */
    SPARE_CLASSES = (SPARE_LOG_END - SPARE_LOG_MIN) << SPARE_STEPS_LOG,
    SPARE_TOLERANCE = 2, /* how many classes larger a reused chunk may be */
    SPARE_MAX_BYTES = 64 << 20,
    LARGEST_SPARE_BYTES = 1 << SPARE_LOG_END,
    BUFFER_CHUNK_BYTES = 1 << SPARE_LOG_MIN
};

struct chunk {
    struct chunk *next;
    size_t size; /* usable bytes of data */
    size_t used;
    size_t total; /* allocated bytes; larger than size where a spare chunk was reused */
    alignas(max_align_t) unsigned char data[];
};

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

static void out_of_memory(size_t size)
{
    fprintf(stderr, "level=error msg=\"out of memory\" bytes=%zu\n", size);
    abort();
}

static size_t checked_size(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        out_of_memory(SIZE_MAX);
    return total;
}

void *mem_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        out_of_memory(checked_size(count, size));
    return memory;
}

void *mem_resize(void *memory, size_t count, size_t size)
{
    size_t total = checked_size(count, size);
    void *resized = realloc(memory, total ? total : 1);
    if (!resized)
        out_of_memory(total);
    return resized;
}

void mem_free(void *memory)
{
    free(memory);
}

/* ---- spare chunks ---- */

/*
 * Chunks of destroyed arenas, kept for reuse, in lists by size class. malloc would return them to
 * the system, and faulting in each page again costs more than most work that is done in it.
 * Disabled under sanitizers, which have to see every use after free.
 *
 * A class is a size rounded up to one of eight steps per power of two. Example: 9,000 bytes lie
 * between 8,192 and 16,384, so the step is 1,024 and the chunk is rounded up to 9,216 bytes.
 */
static struct {
    pthread_mutex_t mutex;
    struct chunk *chunks[SPARE_CLASSES];
    size_t bytes;
} spare = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Returns the size class of a chunk and rounds *total (which includes the header) up to it; -1
 * when chunks of that size are not kept. */
static int size_class(size_t *total)
{
    if (IS_SANITIZED || *total < (size_t)1 << SPARE_LOG_MIN)
        return -1;
    const unsigned log = 63 - (unsigned)__builtin_clzl(*total);
    const unsigned shift = log - SPARE_STEPS_LOG;
    const size_t rounded = (*total + ((size_t)1 << shift) - 1) >> shift;
    const int place = (int)(((size_t)(log - SPARE_LOG_MIN) << SPARE_STEPS_LOG) + rounded) -
                      (1 << SPARE_STEPS_LOG);
    if (log >= SPARE_LOG_END || place >= SPARE_CLASSES)
        return -1;
    *total = rounded << shift;
    return place;
}

/* Takes a chunk of that class or of the next two: sizes of one kind of object vary, and new
 * pages cost more than the unused part of an old chunk. The caller sets chunk->size to the size
 * that was requested, so that the reported size of an object does not depend on which chunk was
 * reused. */
static struct chunk *take_spare_chunk(int place)
{
    if (place < 0)
        return NULL;
    struct chunk *chunk = NULL;
    pthread_mutex_lock(&spare.mutex);
    for (int end = place + SPARE_TOLERANCE; place <= end && place < SPARE_CLASSES; place++) {
        chunk = spare.chunks[place];
        if (!chunk)
            continue;
        spare.chunks[place] = chunk->next;
        spare.bytes -= chunk->total;
        break;
    }
    pthread_mutex_unlock(&spare.mutex);
    return chunk;
}

static void free_chunk(struct chunk *chunk)
{
    size_t total = chunk->total;
    const int place = size_class(&total);
    if (place >= 0) {
        pthread_mutex_lock(&spare.mutex);
        const bool is_room = spare.bytes + total <= SPARE_MAX_BYTES;
        if (is_room) {
            chunk->next = spare.chunks[place];
            spare.chunks[place] = chunk;
            spare.bytes += total;
        }
        pthread_mutex_unlock(&spare.mutex);
        if (is_room)
            return;
    }
    free(chunk);
}

/*
 * Large arrays are filled at once, and a page fault per 4 KiB would cost more than filling them.
 * With this advice the kernel may use 2 MiB pages, so at most one page more is resident than is
 * touched. Kernels without huge pages ignore it. Only for memory that is never resized: the advice
 * splits the mapping, after which it can only grow by copying.
 */
static void advise_huge(void *memory, size_t size)
{
    if (size < HUGE_BYTES)
        return;
    uintptr_t start = ((uintptr_t)memory + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(PAGE_BYTES - 1);
    (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Allocates or reuses a chunk of at least total bytes. */
static struct chunk *take_chunk(size_t total)
{
    struct chunk *chunk = take_spare_chunk(size_class(&total));
    if (!chunk) {
        chunk = malloc(total);
        if (!chunk)
            out_of_memory(total);
        advise_huge(chunk, total);
        chunk->total = total;
    }
    chunk->size = total - sizeof(*chunk);
    chunk->used = 0;
    return chunk;
}

static void free_spare_chunks(void)
{
    pthread_mutex_lock(&spare.mutex);
    for (int i = 0; i < SPARE_CLASSES; i++) {
        while (spare.chunks[i]) {
            struct chunk *chunk = spare.chunks[i];
            spare.chunks[i] = chunk->next;
            free(chunk);
        }
    }
    spare.bytes = 0;
    pthread_mutex_unlock(&spare.mutex);
}

/* ---- buffers ---- */

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
        out_of_memory(SIZE_MAX);
    struct chunk *chunk;
    if (before && before->size >= LARGEST_SPARE_BYTES) { /* mremap moves pages, no copy */
        chunk = realloc(before, total);
        if (!chunk)
            out_of_memory(total);
        chunk->size = wanted;
        chunk->total = total;
    } else {
        chunk = take_chunk(total);
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
        free_chunk(chunk);
    else
        free(buffer);
}

void mem_trim(void)
{
    free_spare_chunks();
    malloc_trim(0);
}

char *mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(mem_alloc(size, 1), text, size);
}

/* ---- arenas ---- */

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
        free_chunk(chunk);
    }
    free(arena);
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
        out_of_memory(SIZE_MAX);
    struct chunk *chunk = take_chunk(total);
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
    size_t wanted = checked_size(count, size);
    size_t rounded;
    if (__builtin_add_overflow(wanted, alignof(max_align_t) - 1, &rounded))
        out_of_memory(SIZE_MAX);
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

char *arena_strndup(struct arena *arena, const void *data, size_t size)
{
    char *copy = arena_alloc_raw(arena, checked_size(size, 1) + 1, 1);
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
