#include "api/core/memory_gate.h"

#include "api/core/memory_info.h"
#include "api/core/settings.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
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

/* A waiting caller; on the stack of its thread. */
struct waiter {
    struct waiter *next;
};

struct memory_gate {
    pthread_mutex_t mutex;
    pthread_cond_t has_room;
    uint64_t max_bytes;
    uint64_t used_bytes;
    struct waiter *first; /* the next to be admitted */
    int waiting_count;
};

struct memory_gate *memory_gate_create(uint64_t max_bytes)
{
    struct memory_gate *gate = mem_new(struct memory_gate, 1);
    gate->max_bytes = max_bytes ? max_bytes : memory_info_share_bytes(2, 256 * MIB, 4096 * MIB);
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->has_room, &attributes);
    pthread_condattr_destroy(&attributes);
    return gate;
}

void memory_gate_destroy(struct memory_gate *gate)
{
    if (!gate)
        return;
    pthread_cond_destroy(&gate->has_room);
    pthread_mutex_destroy(&gate->mutex);
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

static bool has_room(const struct memory_gate *gate, uint64_t bytes)
{
    return bytes <= gate->max_bytes - gate->used_bytes;
}

/* Called with the lock held. */
static bool wait_for_room(struct memory_gate *gate, uint64_t bytes)
{
    struct waiter self = {0};
    struct waiter **slot = &gate->first;
    while (*slot)
        slot = &(*slot)->next;
    *slot = &self;
    gate->waiting_count++;
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += MEMORY_GATE_WAIT_S;
    int failed = 0;
    while ((gate->first != &self || !has_room(gate, bytes)) && failed != ETIMEDOUT)
        failed = pthread_cond_timedwait(&gate->has_room, &gate->mutex, &deadline);
    bool is_in = gate->first == &self && has_room(gate, bytes);
    for (slot = &gate->first; *slot != &self;)
        slot = &(*slot)->next;
    *slot = self.next;
    gate->waiting_count--;
    pthread_cond_broadcast(&gate->has_room); /* the next one may fit now */
    return is_in;
}

enum err_code memory_gate_enter(struct memory_gate *gate, uint64_t bytes, const char *what,
                                struct err *err)
{
    if (bytes == 0)
        return ERR_NONE;
    if (bytes > gate->max_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "%s needs about %" PRIu64 " MiB of memory, and this server has %" PRIu64
                       " MiB for large profiles (--max-heavy-memory): record for a shorter time, "
                       "or ask the operator for more",
                       what, bytes / MIB + 1, gate->max_bytes / MIB);
    pthread_mutex_lock(&gate->mutex);
    bool is_in = !gate->first && has_room(gate, bytes);
    if (!is_in && gate->waiting_count < MEMORY_GATE_WAITERS)
        is_in = wait_for_room(gate, bytes);
    if (is_in)
        gate->used_bytes += bytes;
    pthread_mutex_unlock(&gate->mutex);
    if (is_in)
        return ERR_NONE;
    err_set(err, ERR_BUSY,
            "several large profiles are being read at the moment; try again in a few seconds");
    err->retry_after_s = MEMORY_GATE_RETRY_S;
    return ERR_BUSY;
}

bool memory_gate_try_enter(struct memory_gate *gate, uint64_t bytes)
{
    pthread_mutex_lock(&gate->mutex);
    const bool is_in = !gate->first && has_room(gate, bytes);
    if (is_in)
        gate->used_bytes += bytes;
    pthread_mutex_unlock(&gate->mutex);
    return is_in;
}

void memory_gate_leave(struct memory_gate *gate, uint64_t bytes)
{
    if (bytes == 0)
        return;
    pthread_mutex_lock(&gate->mutex);
    assert(bytes <= gate->used_bytes);
    gate->used_bytes -= bytes;
    pthread_cond_broadcast(&gate->has_room);
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
static void shrink_slot(struct memory_gate *gate, uint64_t slot, const struct profile *profile,
                        struct memory_gate_slot *ret_slot)
{
    uint64_t kept = min_bytes(slot, arena_bytes(profile->arena));
    memory_gate_leave(gate, slot - kept);
    ret_slot->held_bytes = kept;
}

enum err_code memory_gate_decode(struct memory_gate *gate, struct span bytes,
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
        enum err_code code = memory_gate_enter(gate, slot, "this profile", err);
        if (code)
            return code;
        code = format_decode(bytes, &attempt.limits, ret_format, ret_profile, err);
        if (!code) {
            shrink_slot(gate, slot, *ret_profile, ret_slot);
            ret_slot->peak_bytes = attempt.slot;
        } else {
            memory_gate_leave(gate, slot);
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
