/*
 * memory_gate: heavy work with bounded memory: decoding large profiles, and reports from them.
 *
 * Whoever is about to need much memory first takes that many bytes of the gate's budget
 * (--max-heavy-memory) and gives them back when the memory is freed. What does not fit now waits
 * its turn, first come, first served; what can never fit is refused. Nobody waits for more while
 * it holds a place, so that those inside always finish. Work below the light bounds needs no place:
 * each worker thread may do as much at any time.
 *
 * How heavy an input is cannot be told from its size: a small gzip file may hold gigabytes. So it
 * is tried within light limits first, then with a place of four times as much, and so on. Threads:
 * any.
 */
#ifndef API_CORE_MEMORY_GATE_H
#define API_CORE_MEMORY_GATE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/profile.h"

#include <stdint.h>

struct memory_gate;
struct profile;
struct settings;

enum {
    MEMORY_GATE_LIGHT_BYTES = 8 << 20, /* expanded; what each thread may decode outside the gate */
    MEMORY_GATE_MEMORY_FACTOR = 4,     /* decoded bytes allowed per expanded byte */
    MEMORY_GATE_LIGHT_WORK = 32 << 20, /* memory of a report or merge that needs no place */
    MEMORY_GATE_LIGHT_PEAK = MEMORY_GATE_LIGHT_BYTES * (MEMORY_GATE_MEMORY_FACTOR + 1),
    MEMORY_GATE_WAITERS = 4, /* more are refused at once: each holds a worker thread */
    MEMORY_GATE_WAIT_S = 30,
    MEMORY_GATE_RETRY_S = 10
};

/* max_bytes 0: half of what the machine, or the control group this process is in, has of memory,
 * but at least 256 MiB and at most 4 GiB. */
struct memory_gate *memory_gate_create(uint64_t max_bytes);
/* NULL is a no-op. */
void memory_gate_destroy(struct memory_gate *gate);

/* The budget, and what is taken of it. */
uint64_t memory_gate_max_bytes(const struct memory_gate *gate);
uint64_t memory_gate_used_bytes(struct memory_gate *gate);

struct memory_gate_slot {
    uint64_t held_bytes; /* of the budget, now */
    uint64_t peak_bytes; /* what decoding had: bound of its memory, to decode it again */
};

/*
 * As format_decode. The profile lies in ret_place->held_bytes bytes of the budget, 0 for a light
 * one: give them back with memory_gate_leave when it is destroyed. Handles: the codes of
 * format_decode, ERR_BUSY (too many wait, or for too long).
 */
enum err_code memory_gate_decode(struct memory_gate *gate, struct span bytes,
                                 const struct profile_limits *limits, enum format *ret_format,
                                 struct profile **ret_profile, struct memory_gate_slot *ret_place,
                                 struct err *err) MUST_USE;

/* Takes bytes of the budget, given back with memory_gate_leave. what names the work in errors:
 * "this report". Handles: ERR_BUSY, ERR_TOO_LARGE (more than the whole budget). */
enum err_code memory_gate_enter(struct memory_gate *gate, uint64_t bytes, const char *what,
                                struct err *err) MUST_USE;
/* 0 bytes are a no-op. */
void memory_gate_leave(struct memory_gate *gate, uint64_t bytes);

/* What one profile may hold, by the settings and the gate's budget. */
struct profile_limits memory_gate_profile_limits(const struct memory_gate *gate,
                                                 const struct settings *settings);

#endif
