#include "agent/unwind/unwind_failures.h"

#include "agent/unwind/unwind_names.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { PLACES_MAX = 1024, KEY_BYTES = 256 };

struct place {
    const char *key; /* "reason path"; in the arena */
    uint64_t count;
};

struct unwind_failures {
    struct arena *arena;
    struct map_bytes by_key;
    struct place places[PLACES_MAX + 1]; /* the last one: all that do not fit */
    uint32_t count;
};

struct unwind_failures *unwind_failures_create(void)
{
    struct unwind_failures *places = mem_new(struct unwind_failures, 1);
    places->arena = arena_create();
    places->places[PLACES_MAX].key = "elsewhere";
    return places;
}

void unwind_failures_destroy(struct unwind_failures *places)
{
    if (!places)
        return;
    map_bytes_fini(&places->by_key);
    arena_destroy(places->arena);
    mem_free(places);
}

void unwind_failures_add(struct unwind_failures *places, enum unwind_stop stop, const char *path)
{
    char key[KEY_BYTES];
    snprintf(key, sizeof(key), "%s %s", unwind_stop_name(stop), path);
    uint32_t index = map_bytes_find(&places->by_key, span_text(key));
    if (index == MAP_ABSENT && places->count == PLACES_MAX) {
        index = PLACES_MAX;
    } else if (index == MAP_ABSENT) {
        index = places->count++;
        places->places[index].key = arena_strdup(places->arena, key);
        map_bytes_add(&places->by_key, span_text(places->places[index].key), index);
    }
    places->places[index].count++;
}

/* The most frequent of those that are not said yet; PLACES_MAX + 1: none is left. */
static uint32_t next_place(const struct unwind_failures *places, const bool *is_said)
{
    uint32_t best = PLACES_MAX + 1;
    for (uint32_t i = 0; i <= PLACES_MAX; i++) {
        const uint64_t most = best > PLACES_MAX ? 0 : places->places[best].count;
        if (!is_said[i] && places->places[i].count > most)
            best = i;
    }
    return best;
}

void unwind_failures_append(const struct unwind_failures *places, uint32_t limit, struct buf *text)
{
    bool is_said[PLACES_MAX + 1] = {0};
    for (uint32_t said = 0; said < limit; said++) {
        const uint32_t next = next_place(places, is_said);
        if (next > PLACES_MAX)
            return;
        is_said[next] = true;
        buf_printf(text, "%s%" PRIu64 " %s", said ? ", " : "", places->places[next].count,
                   places->places[next].key);
    }
}
