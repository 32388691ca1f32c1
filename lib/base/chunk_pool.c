#include "lib/base/chunk_pool.h"

#include "lib/base/alloc_size.h"
#include "lib/base/sanitizers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    HUGE_BYTES = 4 << 20,
    PAGE_BYTES = 4096,
    POOL_LOG_MIN = 12,  /* the smallest chunk that is kept, 4 KiB */
    POOL_LOG_END = 25,  /* the logarithm of CHUNK_LARGEST_POOLED_BYTES */
    POOL_STEPS_LOG = 3, /* sizes per doubling: rounding up wastes at most an eighth */
    POOL_CLASSES = (POOL_LOG_END - POOL_LOG_MIN) << POOL_STEPS_LOG,
    POOL_TOLERANCE = 2, /* how many classes larger a reused chunk may be */
    POOL_MAX_BYTES = 64 << 20
};
_Static_assert(CHUNK_LARGEST_POOLED_BYTES == 1 << POOL_LOG_END, "the same limit");

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
    struct chunk *chunks[POOL_CLASSES];
    size_t bytes;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Returns the size class of a chunk and rounds *total (which includes the header) up to it; -1
 * when chunks of that size are not kept. */
static int size_class(size_t *total)
{
    if (IS_SANITIZED || *total < (size_t)1 << POOL_LOG_MIN)
        return -1;
    const unsigned log = 63 - (unsigned)__builtin_clzl(*total);
    const unsigned shift = log - POOL_STEPS_LOG;
    const size_t rounded = (*total + ((size_t)1 << shift) - 1) >> shift;
    const int index =
        (int)(((size_t)(log - POOL_LOG_MIN) << POOL_STEPS_LOG) + rounded) - (1 << POOL_STEPS_LOG);
    if (log >= POOL_LOG_END || index >= POOL_CLASSES)
        return -1;
    *total = rounded << shift;
    return index;
}

/* Takes a chunk of that class or of the next two: sizes of one kind of object vary, and new
 * pages cost more than the unused part of an old chunk. The caller sets chunk->size to the size
 * that was requested, so that the reported size of an object does not depend on which chunk was
 * reused. */
static struct chunk *take_pooled(int index)
{
    if (index < 0)
        return NULL;
    struct chunk *chunk = NULL;
    pthread_mutex_lock(&pool.mutex);
    for (int end = index + POOL_TOLERANCE; index <= end && index < POOL_CLASSES; index++) {
        chunk = pool.chunks[index];
        if (!chunk)
            continue;
        pool.chunks[index] = chunk->next;
        pool.bytes -= chunk->total;
        break;
    }
    pthread_mutex_unlock(&pool.mutex);
    return chunk;
}

void chunk_free(struct chunk *chunk)
{
    size_t total = chunk->total;
    const int index = size_class(&total);
    if (index >= 0) {
        pthread_mutex_lock(&pool.mutex);
        const bool is_kept = pool.bytes + total <= POOL_MAX_BYTES;
        if (is_kept) {
            chunk->next = pool.chunks[index];
            pool.chunks[index] = chunk;
            pool.bytes += total;
        }
        pthread_mutex_unlock(&pool.mutex);
        if (is_kept)
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
struct chunk *chunk_take(size_t total)
{
    struct chunk *chunk = take_pooled(size_class(&total));
    if (!chunk) {
        chunk = malloc(total);
        if (!chunk)
            alloc_failed(total);
        advise_huge(chunk, total);
        chunk->total = total;
    }
    chunk->size = total - sizeof(*chunk);
    chunk->used = 0;
    return chunk;
}

void chunk_pool_clear(void)
{
    pthread_mutex_lock(&pool.mutex);
    for (int i = 0; i < POOL_CLASSES; i++) {
        while (pool.chunks[i]) {
            struct chunk *chunk = pool.chunks[i];
            pool.chunks[i] = chunk->next;
            free(chunk);
        }
    }
    pool.bytes = 0;
    pthread_mutex_unlock(&pool.mutex);
}

struct chunk *chunk_resize(struct chunk *chunk, size_t total)
{
    chunk = realloc(chunk, total); /* mremap moves pages of a large chunk, no copy */
    if (!chunk)
        alloc_failed(total);
    chunk->size = total - sizeof(*chunk);
    chunk->total = total;
    return chunk;
}
