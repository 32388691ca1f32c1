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

/*
 * As vec_reserve (lib/base/vec.h), for an array that the arena owns: makes space for `wanted`
 * elements in all. New elements are not zeroed. When the array grows, its elements are copied and
 * the old array stays in the arena; all old arrays together are smaller than the present one. The
 * type of capacity is unsigned; array and capacity are evaluated several times.
 *
 *     arena_reserve(arena, list->items, list->capacity, list->count + 1);
 *     list->items[list->count++] = item;
 */
#define arena_reserve(arena, array, capacity, wanted)                                              \
    do {                                                                                           \
        if ((size_t)(wanted) > (size_t)(capacity)) {                                               \
            size_t arena_capacity_ = (size_t)(capacity);                                           \
            (array) = arena_grow((arena), (array), &arena_capacity_, (size_t)(wanted),             \
                                 sizeof(*(array)), (__typeof__(capacity))-1);                      \
            (capacity) = (__typeof__(capacity))arena_capacity_;                                    \
        }                                                                                          \
    } while (0)
/* For arena_reserve: the copy, with the capacity in *capacity, which is at most max. */
void *arena_grow(struct arena *arena, const void *array, size_t *capacity, size_t wanted,
                 size_t size, size_t max);

#define arena_new(arena, type, count) ((type *)arena_alloc((arena), (count), sizeof(type)))
#define arena_new_raw(arena, type, count) ((type *)arena_alloc_raw((arena), (count), sizeof(type)))

static inline void arena_cleanup(struct arena **arena)
{
    arena_destroy(*arena);
}
/* arena_auto arena = arena_create();   destroyed at the end of the scope */
#define arena_auto __attribute__((cleanup(arena_cleanup))) struct arena *

#endif
