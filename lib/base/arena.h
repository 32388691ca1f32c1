/*
 * arena: objects that are freed together. There is one arena per request, job or decoded profile.
 *
 * An arena is a list of growing chunks. When memory runs out, the process ends with a message, as
 * in mem.h. All sizes are checked for overflow. Threads: an arena belongs to one thread at a time
 * and may be handed over.
 */
#ifndef LIB_BASE_ARENA_H
#define LIB_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

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

/* Lets child live as long as parent, whose bytes include it from now on. Nothing more may be
 * allocated in child. */
void arena_adopt(struct arena *parent, struct arena *child);

#define arena_new(arena, type, count) ((type *)arena_alloc((arena), (count), sizeof(type)))
#define arena_new_raw(arena, type, count) ((type *)arena_alloc_raw((arena), (count), sizeof(type)))

static inline void arena_cleanup(struct arena **arena)
{
    arena_destroy(*arena);
}
/* arena_auto arena = arena_create();   destroyed at the end of the scope */
#define arena_auto __attribute__((cleanup(arena_cleanup))) struct arena *

#endif
