/*
 * mem: the heap and the arena; the only file that calls malloc.
 *
 * Running out of memory ends the process with a message: abuse is stopped earlier, by limits at the
 * door. All sizes are checked for overflow. An arena is a list of growing chunks that are freed
 * together; one per request, job or decoded profile. Threads: an arena belongs to one thread at a
 * time and may be handed over.
 */
#ifndef LIB_BASE_MEM_H
#define LIB_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Heap memory for objects that outlive a request. Zeroed. mem_free(NULL) is a no-op. */
void *mem_alloc(size_t count, size_t size);
/* Grows or shrinks an array to count elements; what is new is not zeroed. */
void *mem_resize(void *memory, size_t count, size_t size);
void mem_free(void *memory);
char *mem_strdup(const char *text);
/*
 * For buffers that grow and soon go again: large ones are made of what arenas and others gave back.
 * Room for at least wanted bytes, more than the *bytes there are, which *bytes becomes; the first
 * `used` bytes of buffer are kept, the rest is not zeroed. NULL and 0: a new one.
 */
void *mem_grow_buffer(void *buffer, size_t used, size_t *bytes, size_t wanted);
void mem_free_buffer(void *buffer, size_t bytes); /* NULL is a no-op */
/* Gives freed memory back to the system, that of all threads: after freeing very many small pieces,
 * which the allocator would keep otherwise. Walks the whole heap: not for every request. */
void mem_trim(void);

#define mem_new(type, count) ((type *)mem_alloc((count), sizeof(type)))

struct arena;

struct arena *arena_create(void);
void arena_destroy(struct arena *arena); /* arena_destroy(NULL) is a no-op */

/* Never NULL, zeroed, aligned for any type; size 0 gives a valid pointer to nothing. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);
/* As arena_alloc, not zeroed: for large arrays that are filled at once. */
void *arena_alloc_raw(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
/* A NUL-terminated copy of size bytes. */
char *arena_strndup(struct arena *arena, const void *data, size_t size);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Bytes that the arena holds from the heap, for charging and for cache limits. */
size_t arena_bytes(const struct arena *arena);
/* Runs clean(object) when the arena is destroyed, last registered first. */
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
