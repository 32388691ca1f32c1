#include "api/profile_cache.h"

#include "api/decode_gate.h"
#include "api/flight_cache.h"
#include "api/metrics.h"
#include "api/server.h"
#include "api/settings.h"
#include "api/share.h"
#include "api/share_memory.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/profile/profile.h"

#include <sys/mman.h>

enum { DEFAULT_BYTES = 256 << 20 };

struct profile_cache {
    struct flight_cache *flights;
};

static void destroy_profile(void *value)
{
    profile_destroy(value);
}

struct profile_cache *profile_cache_create(size_t max_bytes)
{
    struct profile_cache *cache = mem_new(struct profile_cache, 1);
    cache->flights = flight_cache_create(max_bytes ? max_bytes : DEFAULT_BYTES, destroy_profile);
    return cache;
}

void profile_cache_destroy(struct profile_cache *cache)
{
    if (!cache)
        return;
    flight_cache_destroy(cache->flights);
    mem_free(cache);
}

struct decode_job {
    struct server *server;
    const struct share *share;
};

/* Reads through a mapping: an object never changes, and its pages need not be copied. */
static enum err_code decode_object(struct server *server, int fd, size_t size,
                                   struct profile **ret_profile, struct err *err)
{
    if (size == 0)
        return err_set(err, ERR_CORRUPT, "the stored profile is empty");
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return err_set_errno(err, ERR_IO, "mapping a stored profile of %zu bytes", size);
    struct profile_limits limits = share_memory_limits(server->settings);
    enum err_code code = decode_gate_decode(server->shares->gate, span_of(memory, size), &limits,
                                            NULL, ret_profile, err);
    munmap(memory, size);
    return code;
}

static enum err_code decode_share(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err)
{
    const struct decode_job *job = context;
    fd_auto fd = -1;
    uint64_t size;
    enum err_code code = object_open(job->server->objects, job->share->object_key, &fd, &size, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_GONE, "this share was deleted a moment ago");
    if (code)
        return code;
    struct profile *profile;
    metric_add(metrics_counter(job->server->metrics, "perfolio_profile_decodes_total", "",
                               "Stored profiles decoded for viewing."),
               1);
    code = decode_object(job->server, fd, (size_t)size, &profile, err);
    if (code)
        return code;
    *ret_value = profile;
    *ret_bytes = arena_bytes(profile->arena);
    return ERR_NONE;
}

enum err_code profile_cache_ref(struct server *server, const struct share *share,
                                struct flight_entry **ret_entry, struct err *err)
{
    struct decode_job job = {.server = server, .share = share};
    return flight_cache_ref(server->profiles->flights, share->id, decode_share, &job, ret_entry,
                            err);
}

const struct profile *profile_cache_get(const struct flight_entry *entry)
{
    return flight_cache_get(entry);
}

void profile_cache_unref(struct flight_entry *entry)
{
    flight_cache_unref(entry);
}

void profile_cache_drop(struct profile_cache *cache, const char *share_id)
{
    flight_cache_drop(cache->flights, share_id);
}

size_t profile_cache_bytes(struct profile_cache *cache)
{
    return flight_cache_bytes(cache->flights);
}

uint64_t profile_cache_decode_count(struct profile_cache *cache)
{
    return flight_cache_made_count(cache->flights);
}
