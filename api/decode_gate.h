/*
 * decode_gate: decoding with bounded memory: at most a few heavy decodes at the same time.
 *
 * How heavy an input is cannot be told from its size: a small gzip file may hold gigabytes. So
 * every input is first tried within light limits, at any number of threads; what does not fit is
 * decoded again behind the gate with the full limits. Inputs that are large as they stand go to the
 * gate at once. Threads: any.
 */
#ifndef API_DECODE_GATE_H
#define API_DECODE_GATE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/format.h"

struct decode_gate;
struct profile;
struct profile_limits;

enum {
    DECODE_GATE_HEAVY_COUNT = 2,        /* heavy decodes at the same time */
    DECODE_GATE_LIGHT_BYTES = 16 << 20, /* expanded; what each thread may decode outside the gate */
    DECODE_GATE_WAITERS = 4,            /* more are refused at once: each holds a worker thread */
    DECODE_GATE_WAIT_S = 30
};

struct decode_gate *decode_gate_create(void);
/* NULL is a no-op. */
void decode_gate_destroy(struct decode_gate *gate);

/* As format_decode. Handles: the codes of format_decode, ERR_BUSY (too many wait, or for too long).
 */
enum err_code decode_gate_decode(struct decode_gate *gate, struct span bytes,
                                 const struct profile_limits *limits, enum format *ret_format,
                                 struct profile **ret_profile, struct err *err) MUST_USE;

/* For other work that needs as much memory as a heavy decode (a merge of many profiles): one place,
 * given back with decode_gate_leave. Handles: ERR_BUSY. */
enum err_code decode_gate_enter(struct decode_gate *gate, struct err *err) MUST_USE;
void decode_gate_leave(struct decode_gate *gate);

#endif
