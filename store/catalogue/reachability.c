#include "store/catalogue/reachability.h"

#include "lib/base/mem.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue.h"
#include "store/maintain/maintenance.h"

struct reachability reachability_of_upkeep(const struct maintenance_options *options)
{
    return (struct reachability){
        .database = options->jobs_database, .tenant_id = PG_NO_TENANT, .objects = options->objects};
}

bool reachability_is_alone(const struct reachability *witness, const char *object_key,
                           const struct err *failure)
{
    arena_auto arena = arena_create();
    const char *const *keys;
    uint32_t count;
    struct err err;
    if (!failure->is_unreadable ||
        catalogue_list_others(witness->database, arena, witness->tenant_id, object_key, &keys,
                              &count, &err))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!object_probe(witness->objects, keys[i], witness->patience, &err))
            return true;
    }
    return false;
}
