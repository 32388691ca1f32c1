/*
 * mem: the heap and arenas; mem.c is the only file that calls malloc.
 *
 * When memory runs out, the process ends with a message; limits on requests prevent that earlier.
 * All sizes are checked for overflow. An arena is a list of growing chunks that are freed together;
 * there is one per request, job or decoded profile. Threads: an arena belongs to one thread at a
 * time and may be handed over.
 */
#ifndef LIB_BASE_MEM_H
#define LIB_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed heap memory for objects that outlive a request. mem_free(NULL) is a no-op. */
void *mem_alloc(size_t count, size_t size);
/* Grows or shrinks an array to count elements. New elements are not zeroed. */
void *mem_resize(void *memory, size_t count, size_t size);
void mem_free(void *memory);
char *mem_strdup(const char *text);
/*
 * Grows a short-lived buffer. Large blocks come from a pool of blocks that arenas and other buffers
 * have released. Returns a buffer of at least wanted bytes, which is larger than *bytes, and stores
 * its size in *bytes. The first `used` bytes are kept, the rest is not zeroed. buffer NULL with
 * *bytes 0 allocates a new one.
 */
void *mem_grow_buffer(void *buffer, size_t used, size_t *bytes, size_t wanted);
void mem_free_buffer(void *buffer, size_t bytes); /* NULL is a no-op */
/* Returns freed memory of all threads to the system, after many small pieces were freed that the
 * allocator would otherwise keep. Walks the whole heap: do not call it per request. */
void mem_trim(void);

#define mem_new(type, count) ((type *)mem_alloc((count), sizeof(type)))

struct arena;

struct arena *arena_create(void);
void arena_destroy(struct arena *arena); /* arena_destroy(NULL) is a no-op */

/* Never NULL, zeroed, aligned for any type; size 0 returns a valid pointer. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);
/* As arena_alloc, but not zeroed: for large arrays that the caller fills at once. */
void *arena_alloc_raw(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
/* A NUL-terminated copy of size bytes. */
char *arena_strndup(struct arena *arena, const void *data, size_t size);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Bytes that the arena holds from the heap, for budgets and cache limits. */
size_t arena_bytes(const struct arena *arena);
/* Runs clean(object) when the arena is destroyed; the function registered last runs first. */
void arena_on_destroy(struct arena *arena, void (*clean)(void *object), void *object);

#define arena_new(arena, type, count) ((type *)arena_alloc((arena), (count), sizeof(type)))
#define arena_new_raw(arena, type, count) ((type *)arena_alloc_raw((arena), (count), sizeof(type)))

static inline void arena_cleanup(struct arena **arena)
{
    arena_destroy(*arena);
}
/* arena_auto arena = arena_create();   destroyed at the end of the scope */
#define arena_auto __attribute__((cleanup(arena_cleanup))) struct arena *

#endif
