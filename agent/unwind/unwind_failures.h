/*
 * unwind_failures: counts stacks that ended before their root, by binary and reason, so that a
 * fault of the unwinder can be distinguished from a program whose stacks cannot be unwound. The
 * number of binaries is bounded; the stacks of further ones are counted as "elsewhere". Threads:
 * one.
 */
#ifndef AGENT_UNWIND_UNWIND_FAILURES_H
#define AGENT_UNWIND_UNWIND_FAILURES_H

#include "bpf/unwind_format.h"
#include "lib/base/buf.h"

struct unwind_failures;

struct unwind_failures *unwind_failures_create(void);
void unwind_failures_destroy(struct unwind_failures *failures); /* NULL is a no-op */

/* path: that of the binary, or a description of code without one. */
void unwind_failures_add(struct unwind_failures *failures, enum unwind_stop stop, const char *path);

/* "12 frame-pointer /lib/ld.so, 3 register /bin/x": the most frequent, at most limit. */
void unwind_failures_append(const struct unwind_failures *failures, uint32_t limit,
                            struct buf *text);

#endif
