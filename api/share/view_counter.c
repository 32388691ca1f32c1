#include "api/share/view_counter.h"

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

enum { SEEN_SLOTS = 16384 };

struct seen {
    uint64_t hash;
    int64_t at_ns;
};

struct share_views {
    pthread_mutex_t mutex;
    struct seen *seen;
    uint8_t salt[16]; /* so that nobody can choose addresses that collide */
    struct arena *arena;
    struct map_bytes index;
    struct share_view_count *pending;
    uint32_t pending_count;
};

static void start_gathering(struct share_views *views)
{
    views->arena = arena_create();
    views->pending = NULL;
    views->pending_count = 0;
    map_bytes_init(&views->index, 0);
}

struct share_views *share_views_create(void)
{
    struct share_views *views = mem_new(struct share_views, 1);
    pthread_mutex_init(&views->mutex, NULL);
    views->seen = mem_new(struct seen, SEEN_SLOTS);
    digest_random(views->salt, sizeof(views->salt));
    start_gathering(views);
    return views;
}

void share_views_destroy(struct share_views *views)
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

static uint64_t hash_view(const struct share_views *views, struct span share_id,
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

static bool was_seen(struct share_views *views, uint64_t hash, int64_t now_ns)
{
    struct seen *slot = &views->seen[hash % SEEN_SLOTS];
    bool was = slot->hash == hash && now_ns - slot->at_ns < SHARE_VIEWS_AGAIN_S * CLOCK_NS_PER_S;
    if (!was)
        *slot = (struct seen){.hash = hash, .at_ns = now_ns};
    return was;
}

static void add(struct share_views *views, struct span share_id, int64_t amount)
{
    uint32_t index = map_bytes_find(&views->index, share_id);
    if (index == MAP_ABSENT) {
        if (views->pending_count == SHARE_VIEWS_PENDING)
            return;
        index = views->pending_count++;
        if ((index & (index - 1)) == 0) /* 0, 1, 2, 4, …: full */
            views->pending =
                mem_resize(views->pending, index ? 2 * index : 1, sizeof(*views->pending));
        char *id = arena_strndup(views->arena, share_id.data, share_id.size);
        views->pending[index] = (struct share_view_count){.share_id = id};
        map_bytes_add(&views->index, span_of(id, share_id.size), index);
    }
    views->pending[index].count += amount;
}

void share_views_count(struct share_views *views, struct span share_id, const char *address,
                       int64_t now_ns)
{
    uint64_t hash = hash_view(views, share_id, address);
    pthread_mutex_lock(&views->mutex);
    if (!was_seen(views, hash, now_ns))
        add(views, share_id, 1);
    pthread_mutex_unlock(&views->mutex);
}

uint32_t share_views_take(struct share_views *views, struct arena *arena,
                          const struct share_view_count **ret_counts)
{
    pthread_mutex_lock(&views->mutex);
    uint32_t count = views->pending_count;
    struct share_view_count *taken = arena_new(arena, struct share_view_count, count);
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

void share_views_give(struct share_views *views, const struct share_view_count *counts,
                      uint32_t count)
{
    pthread_mutex_lock(&views->mutex);
    for (uint32_t i = 0; i < count; i++)
        add(views, span_text(counts[i].share_id), counts[i].count);
    pthread_mutex_unlock(&views->mutex);
}
