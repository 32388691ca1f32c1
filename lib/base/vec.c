#include "lib/base/vec.h"

enum { FIRST_BYTES = 256 };

size_t vec_grow_capacity(size_t capacity, size_t wanted, size_t size, size_t max)
{
    const size_t least = size < FIRST_BYTES ? FIRST_BYTES / size : 1;
    size_t grown = capacity > max / 2 ? max : 2 * capacity;
    grown = grown < least && least <= max ? least : grown;
    grown = grown < wanted ? wanted : grown;
    /* A count that its variable cannot hold is no array that fits into memory either: mem_resize
     * ends the process, because SIZE_MAX elements overflow. */
    return grown > max ? SIZE_MAX : grown;
}
