/*
 * stop_places: in which binaries walks ended before the root of their stack, and why: tells a
 * fault of the unwinder from programs that are like that. Bounded; what does not fit is counted as
 * "elsewhere". Threads: one.
 */
#ifndef AGENT_UNWIND_UNWIND_FAILURES_H
#define AGENT_UNWIND_UNWIND_FAILURES_H

#include "bpf/unwind_format.h"
#include "lib/base/buf.h"

struct stop_places;

struct stop_places *stop_places_create(void);
void stop_places_destroy(struct stop_places *places); /* NULL is a no-op */

/* path of the binary, or a word for what is none. */
void stop_places_add(struct stop_places *places, enum unwind_stop stop, const char *path);

/* "12 frame-pointer /lib/ld.so, 3 register /bin/x": the most frequent, at most limit. */
void stop_places_append(const struct stop_places *places, uint32_t limit, struct buf *text);

#endif
