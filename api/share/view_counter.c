#include "api/share/view_counter.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

enum { SEEN_SLOTS = 16384 };

struct seen {
    uint64_t hash;
    int64_t at_ns;
};

struct view_counter {
    pthread_mutex_t mutex;
    struct seen *seen;
    uint8_t salt[16]; /* so that no client can choose colliding addresses */
    struct arena *arena;
    struct map_bytes index;
    struct view_count *pending;
    uint32_t pending_count;
    uint32_t pending_capacity;
};

static void start_gathering(struct view_counter *views)
{
    views->arena = arena_create();
    views->pending = NULL;
    views->pending_count = views->pending_capacity = 0;
    map_bytes_init(&views->index, 0);
}

struct view_counter *view_counter_create(void)
{
    struct view_counter *views = mem_new(struct view_counter, 1);
    pthread_mutex_init(&views->mutex, NULL);
    views->seen = mem_new(struct seen, SEEN_SLOTS);
    digest_random(views->salt, sizeof(views->salt));
    start_gathering(views);
    return views;
}

void view_counter_destroy(struct view_counter *views)
{
    if (!views)
        return;
    map_bytes_fini(&views->index);
    arena_destroy(views->arena);
    mem_free(views->pending);
    mem_free(views->seen);
    pthread_mutex_destroy(&views->mutex);
    mem_free(views);
}

static uint64_t hash_view(const struct view_counter *views, struct span share_id,
                          const char *address)
{
    uint8_t text[128];
    int length = snprintf((char *)text, sizeof(text), "%.*s %s", SPAN_PRINT(share_id), address);
    uint8_t digest[DIGEST_BYTES];
    digest_hmac_sha256(span_of(views->salt, sizeof(views->salt)), span_of(text, (size_t)length),
                       digest);
    uint64_t hash;
    memcpy(&hash, digest, sizeof(hash));
    return hash;
}

static bool was_seen(struct view_counter *views, uint64_t hash, int64_t now_ns)
{
    struct seen *slot = &views->seen[hash % SEEN_SLOTS];
    bool was = slot->hash == hash && now_ns - slot->at_ns < VIEW_COUNTER_AGAIN_S * CLOCK_NS_PER_S;
    if (!was)
        *slot = (struct seen){.hash = hash, .at_ns = now_ns};
    return was;
}

static void add_view(struct view_counter *views, struct span share_id, int64_t amount)
{
    uint32_t index = map_bytes_find(&views->index, share_id);
    if (index == MAP_ABSENT) {
        if (views->pending_count == VIEW_COUNTER_PENDING)
            return;
        index = views->pending_count++;
        vec_reserve(views->pending, views->pending_capacity, index + 1);
        char *id = arena_strndup(views->arena, share_id.data, share_id.size);
        views->pending[index] = (struct view_count){.share_id = id};
        map_bytes_add(&views->index, span_of(id, share_id.size), index);
    }
    views->pending[index].count += amount;
}

void view_counter_count(struct view_counter *views, struct span share_id, const char *address,
                        int64_t now_ns)
{
    uint64_t hash = hash_view(views, share_id, address);
    pthread_mutex_lock(&views->mutex);
    if (!was_seen(views, hash, now_ns))
        add_view(views, share_id, 1);
    pthread_mutex_unlock(&views->mutex);
}

uint32_t view_counter_take(struct view_counter *views, struct arena *arena,
                           const struct view_count **ret_counts)
{
    pthread_mutex_lock(&views->mutex);
    uint32_t count = views->pending_count;
    struct view_count *taken = arena_new(arena, struct view_count, count);
    for (uint32_t i = 0; i < count; i++) {
        taken[i].share_id = arena_strdup(arena, views->pending[i].share_id);
        taken[i].count = views->pending[i].count;
    }
    if (count) {
        map_bytes_fini(&views->index);
        arena_destroy(views->arena);
        mem_free(views->pending);
        start_gathering(views);
    }
    pthread_mutex_unlock(&views->mutex);
    *ret_counts = taken;
    return count;
}

void view_counter_give(struct view_counter *views, const struct view_count *counts, uint32_t count)
{
    pthread_mutex_lock(&views->mutex);
    for (uint32_t i = 0; i < count; i++)
        add_view(views, span_text(counts[i].share_id), counts[i].count);
    pthread_mutex_unlock(&views->mutex);
}
