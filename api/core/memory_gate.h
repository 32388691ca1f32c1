/*
 * memory_gate: one memory budget for heavy work: decoding large profiles, and reports of them.
 *
 * A caller that is about to need much memory first takes that many bytes of the budget
 * (--max-heavy-memory) and returns them when the memory is freed. A request that does not fit now
 * waits; one that can never fit is refused. A client is a tenant, or all anonymous clients
 * together. No client holds more than half of the budget, except in one request that needs more by
 * itself, so the other half is free for others at any time. The waiting client that
 * holds the fewest bytes is next; the requests of one client are admitted in order. The number of
 * requests that one client sends does not change how long another client waits. No caller waits for
 * more bytes while it holds some, so callers that hold bytes always finish. Work below the bounds
 * named MEMORY_GATE_LIGHT_… takes nothing of the budget: each worker thread may do that much at any
 * time.
 *
 * The memory that decoding needs is not known from the size of the input: a small gzip file may
 * expand to gigabytes. memory_gate_decode therefore tries with small limits first, and after
 * ERR_TOO_LARGE again with limits and a slot four times as large, until the input fits or the
 * limits are those of the server. Threads: any.
 */
#ifndef API_CORE_MEMORY_GATE_H
#define API_CORE_MEMORY_GATE_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/profile.h"

#include <stdbool.h>
#include <stdint.h>

struct memory_gate;
struct profile;
struct settings;

enum {
    MEMORY_GATE_LIGHT_BYTES =
        8 << 20,                   /* expanded bytes that each thread may decode outside the gate */
    MEMORY_GATE_MEMORY_FACTOR = 4, /* decoded bytes allowed per expanded byte */
    MEMORY_GATE_LIGHT_WORK = 32 << 20, /* memory of a report or merge that needs no slot */
    /* The memory of the largest light decoding: the expanded bytes and the decoded profile. */
    MEMORY_GATE_LIGHT_PEAK = MEMORY_GATE_LIGHT_BYTES * (MEMORY_GATE_MEMORY_FACTOR + 1),
    MEMORY_GATE_WAITERS = 4, /* more are refused at once: each holds a worker thread */
    MEMORY_GATE_WAIT_S = 30, /* a longer wait ends with ERR_BUSY */
    MEMORY_GATE_RETRY_S = 10 /* for Retry-After of that error */
};

/* max_bytes 0: depends on the memory of the host (memory_info.h). */
struct memory_gate *memory_gate_create(uint64_t max_bytes);
/* NULL is a no-op. */
void memory_gate_destroy(struct memory_gate *gate);

/* The budget, and how much of it is taken. */
uint64_t memory_gate_max_bytes(const struct memory_gate *gate);
uint64_t memory_gate_used_bytes(struct memory_gate *gate);
int memory_gate_waiting_count(struct memory_gate *gate);

struct memory_gate_slot {
    uint64_t held_bytes; /* bytes of the budget held now */
    uint64_t peak_bytes; /* upper bound of the memory that decoding needed: what decoding the same
                            bytes again has to take */
};

/* As format_decode. The profile occupies ret_slot->held_bytes bytes of the budget, 0 for a light
 * one; return them with memory_gate_leave when it is destroyed. Errors: those of
 * format_decode, ERR_BUSY (too many callers wait, or this one has waited too long). */
enum err_code memory_gate_decode(struct memory_gate *gate, int64_t client, struct span bytes,
                                 const struct profile_limits *limits, enum format *ret_format,
                                 struct profile **ret_profile, struct memory_gate_slot *ret_slot,
                                 struct err *err) MUST_USE;

/* Takes bytes of the budget; return them with memory_gate_leave. what names the work in the text of
 * an error, such as "this report". Errors: ERR_BUSY, ERR_TOO_LARGE (more than the whole budget).
 */
enum err_code memory_gate_enter(struct memory_gate *gate, int64_t client, uint64_t bytes,
                                const char *what, struct err *err) MUST_USE;
/* The same without waiting: false if the bytes are not free now, would be more than the client's
 * half, or others wait for them. The caller may hold bytes already. */
bool memory_gate_try_enter(struct memory_gate *gate, int64_t client, uint64_t bytes) MUST_USE;
/* 0 bytes are a no-op. */
void memory_gate_leave(struct memory_gate *gate, int64_t client, uint64_t bytes);

/* The limits of one profile, from the settings and the budget. */
struct profile_limits memory_gate_profile_limits(const struct memory_gate *gate,
                                                 const struct settings *settings);

#endif
