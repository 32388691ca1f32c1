#include "lib/base/vec.h"

enum { FIRST_BYTES = 256 };

size_t vec_grow_capacity(size_t capacity, size_t wanted, size_t size, size_t max)
{
    const size_t least = size < FIRST_BYTES ? FIRST_BYTES / size : 1;
    size_t grown = capacity > max / 2 ? max : 2 * capacity;
    grown = grown < least && least <= max ? least : grown;
    grown = grown < wanted ? wanted : grown;
    /* The variable cannot hold the capacity. The caller's mem_resize then ends the process as if
     * memory had run out, because the size of SIZE_MAX elements overflows. */
    return grown > max ? SIZE_MAX : grown;
}
