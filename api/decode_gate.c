#include "api/decode_gate.h"

#include "lib/base/compress.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct decode_gate {
    pthread_mutex_t mutex;
    pthread_cond_t has_room;
    int free_count;
    int waiting_count;
};

struct decode_gate *decode_gate_create(void)
{
    struct decode_gate *gate = mem_new(struct decode_gate, 1);
    gate->free_count = DECODE_GATE_HEAVY_COUNT;
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->has_room, &attributes);
    pthread_condattr_destroy(&attributes);
    return gate;
}

void decode_gate_destroy(struct decode_gate *gate)
{
    if (!gate)
        return;
    pthread_cond_destroy(&gate->has_room);
    pthread_mutex_destroy(&gate->mutex);
    mem_free(gate);
}

enum err_code decode_gate_enter(struct decode_gate *gate, struct err *err)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += DECODE_GATE_WAIT_S;
    int failed = 0;
    pthread_mutex_lock(&gate->mutex);
    if (gate->free_count == 0 && gate->waiting_count >= DECODE_GATE_WAITERS)
        failed = EBUSY;
    gate->waiting_count++;
    while (gate->free_count == 0 && !failed)
        failed = pthread_cond_timedwait(&gate->has_room, &gate->mutex, &deadline);
    gate->waiting_count--;
    bool has_entered = gate->free_count > 0;
    gate->free_count -= has_entered;
    pthread_mutex_unlock(&gate->mutex);
    if (has_entered)
        return ERR_NONE;
    err_set(err, ERR_BUSY, "several large profiles are being read at the moment");
    err->retry_after_s = 10;
    return ERR_BUSY;
}

void decode_gate_leave(struct decode_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->free_count++;
    pthread_cond_signal(&gate->has_room);
    pthread_mutex_unlock(&gate->mutex);
}

/* Compressed profiles expand about three times, some ten times. */
static bool looks_light(struct span bytes)
{
    size_t factor = compress_sniff(bytes) == COMPRESS_NONE ? 1 : 4;
    return bytes.size <= DECODE_GATE_LIGHT_BYTES / factor;
}

enum err_code decode_gate_decode(struct decode_gate *gate, struct span bytes,
                                 const struct profile_limits *limits, enum format *ret_format,
                                 struct profile **ret_profile, struct err *err)
{
    if (looks_light(bytes)) {
        struct profile_limits light = *limits;
        if (light.raw_bytes == 0 || light.raw_bytes > DECODE_GATE_LIGHT_BYTES)
            light.raw_bytes = DECODE_GATE_LIGHT_BYTES;
        /* Varints of one byte become arrays of eight: what is decoded is bounded by itself. */
        light.memory_bytes = (uint64_t)4 * DECODE_GATE_LIGHT_BYTES;
        enum err_code code = format_decode(bytes, &light, ret_format, ret_profile, err);
        if (code != ERR_TOO_LARGE)
            return code;
    }
    enum err_code code = decode_gate_enter(gate, err);
    if (code)
        return code;
    code = format_decode(bytes, limits, ret_format, ret_profile, err);
    decode_gate_leave(gate);
    return code;
}
