#include "agent/unwind/unwind_failures.h"

#include "agent/unwind/unwind_names.h"
#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { SITES_MAX = 1024, KEY_BYTES = 256 };

struct site {
    const char *key; /* "reason path"; in the arena */
    uint64_t count;
};

struct unwind_failures {
    struct arena *arena;
    struct map_bytes by_key;
    struct site sites[SITES_MAX + 1]; /* the last one counts all that do not fit */
    uint32_t count;
};

struct unwind_failures *unwind_failures_create(void)
{
    struct unwind_failures *failures = mem_new(struct unwind_failures, 1);
    failures->arena = arena_create();
    failures->sites[SITES_MAX].key = "elsewhere";
    return failures;
}

void unwind_failures_destroy(struct unwind_failures *failures)
{
    if (!failures)
        return;
    map_bytes_fini(&failures->by_key);
    arena_destroy(failures->arena);
    mem_free(failures);
}

void unwind_failures_add(struct unwind_failures *failures, enum unwind_stop stop, const char *path)
{
    char key[KEY_BYTES];
    snprintf(key, sizeof(key), "%s %s", unwind_stop_name(stop), path);
    uint32_t index = map_bytes_find(&failures->by_key, span_text(key));
    if (index == MAP_ABSENT && failures->count == SITES_MAX) {
        index = SITES_MAX;
    } else if (index == MAP_ABSENT) {
        index = failures->count++;
        failures->sites[index].key = arena_strdup(failures->arena, key);
        map_bytes_add(&failures->by_key, span_text(failures->sites[index].key), index);
    }
    failures->sites[index].count++;
}

/* The most frequent site that is not listed yet; SITES_MAX + 1: none is left. */
static uint32_t next_site(const struct unwind_failures *failures, const bool *is_listed)
{
    uint32_t best = SITES_MAX + 1;
    for (uint32_t i = 0; i <= SITES_MAX; i++) {
        const uint64_t most = best > SITES_MAX ? 0 : failures->sites[best].count;
        if (!is_listed[i] && failures->sites[i].count > most)
            best = i;
    }
    return best;
}

void unwind_failures_append(const struct unwind_failures *failures, uint32_t limit,
                            struct buf *text)
{
    bool is_listed[SITES_MAX + 1] = {0};
    for (uint32_t listed = 0; listed < limit; listed++) {
        const uint32_t next = next_site(failures, is_listed);
        if (next > SITES_MAX)
            return;
        is_listed[next] = true;
        buf_printf(text, "%s%" PRIu64 " %s", listed ? ", " : "", failures->sites[next].count,
                   failures->sites[next].key);
    }
}
