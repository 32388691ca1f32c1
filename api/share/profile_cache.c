#include "api/share/profile_cache.h"

#include "api/core/integrity.h"
#include "api/core/memory_gate.h"
#include "api/core/memory_info.h"
#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/debuginfo/symbol_tables.h"
#include "api/report/symbol_resolver.h"
#include "api/share/share.h"
#include "api/share/share_runtime.h"
#include "api/share/share_summary.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mapped_file.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/profile/profile.h"
#include "lib/profile/symbolize.h"

#include <inttypes.h>
#include <stdio.h>

struct profile_cache {
    struct flight_cache *flights;
};

struct cached {
    struct profile *profile;                 /* NULL: its names need more memory than was allowed */
    const struct symbolize_binary *binaries; /* with addresses without names */
    uint32_t binary_count;
    bool is_incomplete;       /* names were left out because the disk has no space for a table */
    bool wants_names;         /* some of its addresses have no name, or a name without lines */
    struct flight_entry *raw; /* the profile without names, from which this one borrows; NULL: this
                                 is the profile without names */
};

static void destroy_cached(void *value)
{
    struct cached *cached = value;
    profile_destroy(cached->profile);
    flight_cache_unref(cached->raw);
    mem_free(cached);
}

static struct cached *cached_create(struct profile *profile, size_t *ret_bytes)
{
    struct cached *cached = mem_new(struct cached, 1);
    cached->profile = profile;
    cached->binary_count = symbolize_find_binaries(profile, profile->arena, &cached->binaries);
    cached->wants_names = symbolize_wants(profile, SYMBOLIZE_WITHOUT_LINES);
    *ret_bytes = sizeof(*cached) + arena_bytes(profile->arena);
    return cached;
}

struct profile_cache *profile_cache_create(size_t max_bytes)
{
    struct profile_cache *cache = mem_new(struct profile_cache, 1);
    if (max_bytes == 0)
        max_bytes = memory_info_limit_bytes(MEMORY_PROFILE_CACHE);
    cache->flights = flight_cache_create(max_bytes, destroy_cached);
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

struct share_cost profile_cache_cost(const struct share *share)
{
    struct share_cost cost;
    if (share_summary_read_cost(share->summary, &cost))
        return cost;
    /* Unknown: assume a large compressed profile. */
    return (struct share_cost){.decode_bytes = share->raw_bytes * 16,
                               .decoded_bytes = share->raw_bytes * 12,
                               .stack_frames = share->raw_bytes * 2,
                               .sample_count = share->raw_bytes / 8};
}

/* The limits for decoding a share again: at most the memory that decoding took at the upload, which
 * the caller has taken from the memory gate. */
static struct profile_limits limits_of(const struct server *server, const struct share *share)
{
    struct profile_limits limits =
        memory_gate_profile_limits(server->memory_gate, server->settings);
    /* The profile was accepted at its upload: a lower max-share-expansion-ratio, or a stricter rule
     * for texts, must not hide a share. The limits of size and memory still apply. */
    limits.expansion_ratio = 0;
    limits.was_accepted = true;
    uint64_t peak = profile_cache_cost(share).decode_bytes;
    if (peak < limits.memory_bytes)
        limits.memory_bytes = peak;
    return limits;
}

/* Reads through a mapping: an object never changes, and its pages need no copy. The digest is
 * computed by read calls, which report a bad sector. */
static enum err_code decode_object(struct server *server, const struct share *share, int fd,
                                   struct profile **ret_profile, struct err *err)
{
    const struct integrity_object object = share_stored_object(share);
    const size_t size = (size_t)object.bytes;
    if (size == 0)
        return err_set(err, ERR_CORRUPT, "the stored profile is empty");
    enum err_code code = integrity_verify(server, &object, fd, err);
    if (code)
        return code;
    mapped_file_auto file = {0};
    code = mapped_file_open(fd, size, &file, err);
    if (code)
        return code;
    struct profile_limits limits = limits_of(server, share);
    code = format_decode(file.bytes, &limits, NULL, ret_profile, err);
    struct err read_err;
    if (!mapped_file_check(&file, &read_err))
        return code;
    if (!code)
        profile_destroy(*ret_profile);
    *err = read_err;
    return err->code;
}

static enum err_code decode_share(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err)
{
    const struct decode_job *job = context;
    fd_auto fd = -1;
    enum err_code code = share_open_object(job->server, job->share, &fd, err);
    if (code)
        return code;
    struct profile *profile;
    metric_add(metrics_counter(job->server->metrics, "perfolio_profile_decodes_total", "",
                               "Stored profiles decoded for viewing."),
               1);
    code = decode_object(job->server, job->share, fd, &profile, err);
    if (code)
        return code;
    *ret_value = cached_create(profile, ret_bytes);
    return ERR_NONE;
}

enum err_code profile_cache_ref(struct server *server, const struct share *share,
                                struct flight_entry **ret_entry, struct err *err)
{
    struct decode_job job = {.server = server, .share = share};
    return flight_cache_ref(server->shares->profiles->flights, share->id, decode_share, &job,
                            ret_entry, err);
}

/* ---- with names ---- */

struct name_job {
    struct server *server;
    const struct share *share;
    enum symbol_name_format_mode mode;
    uint64_t names_bytes;
    struct flight_entry **raw; /* ownership is taken */
};

/* The memory of names, with the frames that they add to the two views of a report. */
static uint64_t memory_of_names(const struct profile *raw, const struct profile *named,
                                const struct arena *arena)
{
    enum { ADDED_FRAME_BYTES = 2 * sizeof(uint32_t) };
    const uint64_t before = profile_count_frames(raw), after = profile_count_frames(named);
    return arena_bytes(arena) + (after > before ? after - before : 0) * ADDED_FRAME_BYTES;
}

static enum err_code name_profile(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err)
{
    const struct name_job *job = context;
    const struct cached *raw = flight_cache_get(*job->raw);
    struct arena *arena = arena_create();
    struct profile *named = arena_new(arena, struct profile, 1);
    bool is_incomplete = false;
    enum err_code code =
        symbol_resolver_profile(job->server->symbol_resolver, job->share->tenant_id, job->mode,
                                raw->profile, job->names_bytes, arena, named, &is_incomplete, err);
    const bool needs_more =
        code == ERR_TOO_LARGE ||
        (!code && memory_of_names(raw->profile, named, arena) > job->names_bytes);
    if (code || needs_more)
        arena_destroy(arena);
    if (code && !needs_more)
        return code;
    struct cached *cached = mem_new(struct cached, 1);
    if (needs_more) {
        *ret_value = cached;
        *ret_bytes = sizeof(*cached);
        return ERR_NONE;
    }
    named->arena = arena;
    *cached = (struct cached){.profile = named,
                              .binaries = raw->binaries,
                              .binary_count = raw->binary_count,
                              .is_incomplete = is_incomplete,
                              .raw = *job->raw};
    *job->raw = NULL;
    *ret_value = cached;
    *ret_bytes = sizeof(*cached) + arena_bytes(arena);
    return ERR_NONE;
}

enum err_code profile_cache_ref_named(struct server *server, const struct share *share,
                                      enum symbol_name_format_mode mode, uint64_t names_bytes,
                                      struct flight_entry **ret_entry, struct err *err)
{
    profile_cache_auto raw = NULL;
    enum err_code code = profile_cache_ref(server, share, &raw, err);
    if (code)
        return code;
    const struct cached *cached = flight_cache_get(raw);
    if (!cached->wants_names) {
        *ret_entry = raw;
        raw = NULL;
        return ERR_NONE;
    }
    char key[128];
    snprintf(key, sizeof(key), "%s names %d %" PRIu64 " %" PRIu64, share->id, (int)mode,
             symbol_tables_version(server, share->tenant_id), names_bytes);
    struct name_job job = {
        .server = server, .share = share, .mode = mode, .names_bytes = names_bytes, .raw = &raw};
    code = flight_cache_ref(server->shares->profiles->flights, key, name_profile, &job, ret_entry,
                            err);
    if (!code && !profile_cache_get(*ret_entry)) {
        flight_cache_unref(*ret_entry);
        *ret_entry = NULL;
    }
    return code;
}

bool profile_cache_take(struct profile_cache_memory *memory, uint64_t bytes)
{
    if (bytes <= memory->table_bytes)
        return true;
    if (memory_gate_try_enter(memory->gate, memory->client, bytes - memory->table_bytes)) {
        memory->taken_bytes = bytes - memory->table_bytes;
        return true;
    }
    memory->wanted_bytes = bytes;
    return false;
}

enum err_code profile_cache_with_names(struct server *server, int64_t client, uint64_t bytes,
                                       uint64_t report_bytes, size_t profile_count,
                                       profile_cache_work *work, void *context, struct err *err)
{
    struct memory_gate *gate = server->memory_gate;
    const uint64_t all = memory_gate_max_bytes(gate);
    const uint64_t most = all > bytes && profile_count ? (all - bytes) / profile_count : 0;
    const uint64_t light = MEMORY_GATE_LIGHT_WORK;
    uint64_t names_bytes = light, added_names = 0, added_tables = 0;
    if (report_bytes < light)
        report_bytes = light;
    for (;;) {
        const uint64_t taken = bytes + added_names + added_tables;
        struct profile_cache_memory memory = {.gate = gate,
                                              .client = client,
                                              .names_bytes = names_bytes,
                                              .table_bytes = report_bytes + added_tables};
        enum err_code code = memory_gate_enter(gate, client, taken, "this report", err);
        if (code)
            return code;
        code = work(context, &memory, err);
        memory_gate_leave(gate, client, taken + memory.taken_bytes);
        if (code || (!memory.needs_names && !memory.wanted_bytes))
            return code;
        if (memory.wanted_bytes)
            added_tables = memory.wanted_bytes - report_bytes;
        if (!memory.needs_names)
            continue;
        if (names_bytes >= most)
            return memory_gate_enter(gate, client, all + 1, "this report", err);
        names_bytes = 4 * names_bytes < most ? 4 * names_bytes : most;
        added_names = profile_count * names_bytes;
    }
}

/* Moves context to *ret_value and sets it to NULL. */
static enum err_code take_profile(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err)
{
    struct profile **profile = context;
    (void)err;
    *ret_value = cached_create(*profile, ret_bytes);
    *profile = NULL;
    return ERR_NONE;
}

void profile_cache_keep(struct profile_cache *cache, const char *share_id, struct profile *profile)
{
    struct flight_entry *entry;
    struct err ignored;
    if (flight_cache_ref(cache->flights, share_id, take_profile, &profile, &entry, &ignored) == 0)
        flight_cache_unref(entry);
    profile_destroy(profile);
}

const struct profile *profile_cache_get(const struct flight_entry *entry)
{
    const struct cached *cached = flight_cache_get(entry);
    return cached->profile;
}

bool profile_cache_is_incomplete(const struct flight_entry *entry)
{
    const struct cached *cached = flight_cache_get(entry);
    return cached->is_incomplete;
}

const struct symbolize_binary *profile_cache_binaries(const struct flight_entry *entry,
                                                      uint32_t *ret_count)
{
    const struct cached *cached = flight_cache_get(entry);
    *ret_count = cached->binary_count;
    return cached->binaries;
}

void profile_cache_unref(struct flight_entry *entry)
{
    flight_cache_unref(entry);
}

void profile_cache_drop(struct profile_cache *cache, const char *share_id)
{
    flight_cache_forget_prefix(cache->flights, share_id);
}

size_t profile_cache_bytes(struct profile_cache *cache)
{
    return flight_cache_bytes(cache->flights);
}
