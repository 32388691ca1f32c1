/*
 * vec: growable arrays. An array is an element pointer, a count and a capacity, three members of
 * the struct that owns it; vec_reserve makes space before elements are added:
 *
 *     vec_reserve(list->items, list->capacity, list->count + 1);
 *     list->items[list->count++] = item;
 *
 * The capacity doubles, so adding n elements copies fewer than 2 n of them. New elements are not
 * zeroed unless vec_reserve_zeroed is used. The owner frees the array with mem_free. Pointers to
 * elements are invalid after vec_reserve. When memory runs out, the process ends (lib/base/mem.h);
 * limits on the input prevent that earlier. Threads: those of the struct that owns the array.
 */
#ifndef LIB_BASE_VEC_H
#define LIB_BASE_VEC_H

#include "lib/base/mem.h"

#include <stddef.h>
#include <string.h>

/*
 * The capacity to use for at least `wanted` elements of `size` bytes, at least twice the present
 * one and at least 256 bytes; max is the largest value of the variable that stores the capacity.
 * For arrays that share one capacity; others use vec_reserve.
 */
size_t vec_grow_capacity(size_t capacity, size_t wanted, size_t size, size_t max);

/* The largest value that fits into a variable of the type of `capacity`, signed or not. */
#define VEC_MAX(capacity)                                                                          \
    ((__typeof__(capacity))-1 > 0 ? (size_t)(__typeof__(capacity))-1                               \
                                  : ((size_t)1 << (8 * sizeof(capacity) - 1)) - 1)

/* Makes space for `wanted` elements in all; array and capacity are evaluated several times. */
#define vec_reserve(array, capacity, wanted)                                                       \
    do {                                                                                           \
        const size_t vec_wanted_ = (size_t)(wanted);                                               \
        if (vec_wanted_ > (size_t)(capacity)) {                                                    \
            const size_t vec_grown_ = vec_grow_capacity((size_t)(capacity), vec_wanted_,           \
                                                        sizeof(*(array)), VEC_MAX(capacity));      \
            (array) = mem_resize((array), vec_grown_, sizeof(*(array)));                           \
            (capacity) = (__typeof__(capacity))vec_grown_;                                         \
        }                                                                                          \
    } while (0)

/* Like vec_reserve, with the new elements zeroed: for tables that are indexed by a number. */
#define vec_reserve_zeroed(array, capacity, wanted)                                                \
    do {                                                                                           \
        const size_t vec_before_ = (size_t)(capacity);                                             \
        vec_reserve(array, capacity, wanted);                                                      \
        memset((array) + vec_before_, 0, ((size_t)(capacity)-vec_before_) * sizeof(*(array)));     \
    } while (0)

#endif
