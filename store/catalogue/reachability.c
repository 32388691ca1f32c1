#include "store/catalogue/reachability.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue.h"

bool reachability_is_alone(const struct reachability *reachability, const char *object_key,
                           const struct err *failure)
{
    arena_auto arena = arena_create();
    const char *const *keys;
    uint32_t count;
    struct err err;
    if (!failure->is_unreadable ||
        catalogue_list_others(reachability->database, arena, reachability->tenant_id, object_key,
                              &keys, &count, &err))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!object_probe(reachability->objects, keys[i], reachability->wait_limit, &err))
            return true;
    }
    return false;
}
