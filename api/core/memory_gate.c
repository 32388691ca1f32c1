#include "api/core/memory_gate.h"

#include "api/core/memory_info.h"
#include "api/core/settings.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* A larger profile is not useful to look at: it would have half a gigabyte of stacks, or more. */
#define MEMORY_BYTES_MOST (UINT64_C(1) << 30)

#define MIB (UINT64_C(1) << 20)

/* The bytes that a client holds. */
struct holder {
    int64_t client;
    uint64_t bytes; /* above 0 */
};

/* A waiting caller; on the stack of its thread. */
struct waiter {
    struct waiter *next; /* in order of arrival */
    int64_t client;
    uint64_t bytes;
    bool is_refused; /* another caller has replaced it */
};

struct memory_gate {
    pthread_mutex_t mutex;
    pthread_cond_t has_changed;
    uint64_t max_bytes;
    uint64_t used_bytes;
    struct waiter *first;
    int waiting_count;
    struct holder *holders; /* one per client: few, each has a thread */
    uint32_t holder_count;
    uint32_t holder_capacity;
};

struct memory_gate *memory_gate_create(uint64_t max_bytes)
{
    struct memory_gate *gate = mem_new(struct memory_gate, 1);
    gate->max_bytes = max_bytes ? max_bytes : memory_info_limit_bytes(MEMORY_HEAVY);
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->has_changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return gate;
}

void memory_gate_destroy(struct memory_gate *gate)
{
    if (!gate)
        return;
    pthread_cond_destroy(&gate->has_changed);
    pthread_mutex_destroy(&gate->mutex);
    mem_free(gate->holders);
    mem_free(gate);
}

uint64_t memory_gate_max_bytes(const struct memory_gate *gate)
{
    return gate->max_bytes;
}

uint64_t memory_gate_used_bytes(struct memory_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    uint64_t bytes = gate->used_bytes;
    pthread_mutex_unlock(&gate->mutex);
    return bytes;
}

int memory_gate_waiting_count(struct memory_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    const int count = gate->waiting_count;
    pthread_mutex_unlock(&gate->mutex);
    return count;
}

/* ---- called with the lock held ---- */

static uint64_t held_by(const struct memory_gate *gate, int64_t client)
{
    for (uint32_t i = 0; i < gate->holder_count; i++) {
        if (gate->holders[i].client == client)
            return gate->holders[i].bytes;
    }
    return 0;
}

static void set_held(struct memory_gate *gate, int64_t client, uint64_t bytes)
{
    uint32_t i = 0;
    while (i < gate->holder_count && gate->holders[i].client != client)
        i++;
    if (i == gate->holder_count) {
        vec_reserve(gate->holders, gate->holder_capacity, i + 1);
        gate->holders[gate->holder_count++] = (struct holder){.client = client};
    }
    gate->used_bytes += bytes - gate->holders[i].bytes;
    gate->holders[i].bytes = bytes;
    if (!bytes)
        gate->holders[i] = gate->holders[--gate->holder_count];
}

/* A client that holds bytes gets no more than half of the budget, whether others wait or not: its
 * work may take a minute, and a client that comes in that time would wait for as long. */
static bool exceeds_half(const struct memory_gate *gate, int64_t client, uint64_t bytes)
{
    const uint64_t held = held_by(gate, client);
    return held && held + bytes > gate->max_bytes / 2;
}

static bool is_first_of_client(const struct memory_gate *gate, const struct waiter *waiter)
{
    const struct waiter *earlier = gate->first;
    while (earlier != waiter && (earlier->is_refused || earlier->client != waiter->client))
        earlier = earlier->next;
    return earlier == waiter;
}

/* The next to be admitted: of the clients that hold the fewest bytes, the one that came first; the
 * callers of one client in order. NULL: all that wait wait for their own client. */
static const struct waiter *find_next(const struct memory_gate *gate)
{
    const struct waiter *next = NULL;
    uint64_t least = UINT64_MAX;
    for (const struct waiter *waiter = gate->first; waiter; waiter = waiter->next) {
        const uint64_t held = held_by(gate, waiter->client);
        if (waiter->is_refused || held >= least || !is_first_of_client(gate, waiter) ||
            exceeds_half(gate, waiter->client, waiter->bytes))
            continue;
        next = waiter;
        least = held;
    }
    return next;
}

static bool can_enter(const struct memory_gate *gate, const struct waiter *waiter)
{
    return find_next(gate) == waiter && waiter->bytes <= gate->max_bytes - gate->used_bytes;
}

static int waiting_of(const struct memory_gate *gate, int64_t client)
{
    int count = 0;
    for (const struct waiter *waiter = gate->first; waiter; waiter = waiter->next)
        count += waiter->client == client && !waiter->is_refused;
    return count;
}

/* In a full list, a caller replaces the last one of the client with the most callers, if that
 * client has at least two more than the caller's. Returns false if the list is full. */
static bool replace_waiter(struct memory_gate *gate, int64_t client)
{
    struct waiter *last = NULL;
    int most = waiting_of(gate, client) + 1;
    if (gate->waiting_count < MEMORY_GATE_WAITERS)
        return true;
    for (struct waiter *waiter = gate->first; waiter; waiter = waiter->next) {
        const int count = waiting_of(gate, waiter->client);
        if (waiter->is_refused || count < most ||
            (last && count == most && waiter->client != last->client))
            continue;
        most = count;
        last = waiter;
    }
    if (!last || most < waiting_of(gate, client) + 2)
        return false;
    last->is_refused = true;
    gate->waiting_count--;
    pthread_cond_broadcast(&gate->has_changed);
    return true;
}

static void unlink_waiter(struct memory_gate *gate, const struct waiter *waiter)
{
    struct waiter **link = &gate->first;
    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
    gate->waiting_count -= !waiter->is_refused;
    pthread_cond_broadcast(&gate->has_changed); /* the next one may fit now */
}

static void append_waiter(struct memory_gate *gate, struct waiter *waiter)
{
    struct waiter **link = &gate->first;
    while (*link)
        link = &(*link)->next;
    *link = waiter;
    gate->waiting_count++;
}

static bool wait_for_memory(struct memory_gate *gate, struct waiter *self)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += MEMORY_GATE_WAIT_S;
    int failed = 0;
    append_waiter(gate, self);
    while (!can_enter(gate, self) && !self->is_refused && failed != ETIMEDOUT)
        failed = pthread_cond_timedwait(&gate->has_changed, &gate->mutex, &deadline);
    const bool is_in = !self->is_refused && can_enter(gate, self);
    unlink_waiter(gate, self);
    return is_in;
}

/* ---- called by requests ---- */

enum err_code memory_gate_enter(struct memory_gate *gate, int64_t client, uint64_t bytes,
                                const char *what, struct err *err)
{
    struct waiter self = {.client = client, .bytes = bytes};
    if (bytes == 0)
        return ERR_NONE;
    if (bytes > gate->max_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "%s needs about %" PRIu64 " MiB of memory, and this server has %" PRIu64
                       " MiB for large profiles (--max-heavy-memory): record for a shorter time, "
                       "or ask the operator for more",
                       what, bytes / MIB + 1, gate->max_bytes / MIB);
    if (memory_gate_try_enter(gate, client, bytes))
        return ERR_NONE;
    pthread_mutex_lock(&gate->mutex);
    const bool is_in = replace_waiter(gate, client) && wait_for_memory(gate, &self);
    if (is_in)
        set_held(gate, client, held_by(gate, client) + bytes);
    pthread_mutex_unlock(&gate->mutex);
    if (is_in)
        return ERR_NONE;
    err_set(err, ERR_BUSY,
            "several large profiles are being read at the moment; try again in a few seconds");
    err->retry_after_s = MEMORY_GATE_RETRY_S;
    return ERR_BUSY;
}

bool memory_gate_try_enter(struct memory_gate *gate, int64_t client, uint64_t bytes)
{
    pthread_mutex_lock(&gate->mutex);
    const bool is_in = !find_next(gate) && !waiting_of(gate, client) &&
                       !exceeds_half(gate, client, bytes) &&
                       bytes <= gate->max_bytes - gate->used_bytes;
    if (is_in)
        set_held(gate, client, held_by(gate, client) + bytes);
    pthread_mutex_unlock(&gate->mutex);
    return is_in;
}

void memory_gate_leave(struct memory_gate *gate, int64_t client, uint64_t bytes)
{
    if (bytes == 0)
        return;
    pthread_mutex_lock(&gate->mutex);
    assert(bytes <= held_by(gate, client));
    set_held(gate, client, held_by(gate, client) - bytes);
    pthread_cond_broadcast(&gate->has_changed);
    pthread_mutex_unlock(&gate->mutex);
}

static uint64_t min_bytes(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One attempt to decode: its limits, and the budget that it takes. */
struct attempt {
    struct profile_limits limits;
    uint64_t slot;
    bool is_last;
};

/* The limits for decoding up to raw_bytes expanded bytes, at most those of the server and at most
 * what fits into the budget. Uncompressed input needs no memory of its own: it is in memory
 * already. A JSON tree takes about twelve times its text, and is freed before the profile is full.
 */
static struct attempt plan_attempt(const struct memory_gate *gate,
                                   const struct profile_limits *most, bool is_compressed,
                                   uint64_t raw_bytes)
{
    uint64_t budget = gate->max_bytes;
    uint64_t raw_most = min_bytes(most->raw_bytes, is_compressed ? budget / 2 : UINT64_MAX);
    uint64_t raw = min_bytes(raw_bytes, raw_most);
    uint64_t memory_most = min_bytes(most->memory_bytes, budget - (is_compressed ? raw_most : 0));
    uint64_t memory = min_bytes(raw_bytes * MEMORY_GATE_MEMORY_FACTOR, memory_most);
    struct attempt attempt = {.limits = *most, .slot = memory + (is_compressed ? raw : 0)};
    attempt.limits.raw_bytes = (size_t)raw;
    attempt.limits.memory_bytes = memory;
    attempt.limits.json_bytes = (size_t)min_bytes(most->json_bytes, memory / 12);
    attempt.is_last = raw == raw_most && memory == memory_most;
    return attempt;
}

/* Reduces the slot to the memory of the decoded profile. */
static void shrink_slot(struct memory_gate *gate, int64_t client, uint64_t slot,
                        const struct profile *profile, struct memory_gate_slot *ret_slot)
{
    uint64_t kept = min_bytes(slot, arena_bytes(profile->arena));
    memory_gate_leave(gate, client, slot - kept);
    ret_slot->held_bytes = kept;
}

enum err_code memory_gate_decode(struct memory_gate *gate, int64_t client, struct span bytes,
                                 const struct profile_limits *limits, enum format *ret_format,
                                 struct profile **ret_profile, struct memory_gate_slot *ret_slot,
                                 struct err *err)
{
    struct profile_limits most = profile_limits_resolve(limits);
    bool is_compressed = compress_sniff(bytes) != COMPRESS_NONE;
    /* Compressed profiles typically expand three times, some ten times. */
    uint64_t least_raw = is_compressed ? (uint64_t)bytes.size * 3 : bytes.size;
    uint64_t raw = MEMORY_GATE_LIGHT_BYTES;
    for (;; raw *= MEMORY_GATE_MEMORY_FACTOR) {
        struct attempt attempt = plan_attempt(gate, &most, is_compressed, raw);
        if (raw < least_raw && !attempt.is_last)
            continue;
        uint64_t slot = attempt.slot <= MEMORY_GATE_LIGHT_PEAK ? 0 : attempt.slot;
        enum err_code code = memory_gate_enter(gate, client, slot, "this profile", err);
        if (code)
            return code;
        code = format_decode(bytes, &attempt.limits, ret_format, ret_profile, err);
        if (!code) {
            shrink_slot(gate, client, slot, *ret_profile, ret_slot);
            ret_slot->peak_bytes = attempt.slot;
        } else {
            memory_gate_leave(gate, client, slot);
        }
        if (code != ERR_TOO_LARGE || err->is_final || attempt.is_last)
            return code;
    }
}

struct profile_limits memory_gate_profile_limits(const struct memory_gate *gate,
                                                 const struct settings *settings)
{
    const uint64_t heavy_bytes = memory_gate_max_bytes(gate);
    uint64_t samples = settings->max_profile_samples;
    return (struct profile_limits){
        .raw_bytes = (size_t)settings->max_profile_bytes,
        .memory_bytes = heavy_bytes < MEMORY_BYTES_MOST ? heavy_bytes : MEMORY_BYTES_MOST,
        .expansion_ratio = (uint32_t)settings->max_share_expansion_ratio,
        .expansion_setting = "max-share-expansion-ratio",
        .sample_count = samples > UINT32_MAX ? UINT32_MAX : (uint32_t)samples,
    };
}
