/*
 * parallel: runs the independent parts of one computation on several threads.
 *
 * The calling thread works too. The process has one pool of helper threads, one less than the
 * machine has processors and at most PARALLEL_MAX_THREADS - 1. Concurrent calls share these
 * helpers, so they do not use more threads than that besides their callers. While all helpers are
 * busy the caller does all parts. A wake-up costs some microseconds, so use it for parts that take
 * a millisecond or more.
 *
 * Threads: any; do_part must not call parallel_for. A child of fork has no helpers: it must not
 * call parallel_for if its parent has.
 */
#ifndef LIB_BASE_PARALLEL_H
#define LIB_BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

enum { PARALLEL_MAX_THREADS = 8 };

/* The number of parts of one call that can run at once: the number of processors when this function
 * was first called, at most PARALLEL_MAX_THREADS. */
size_t parallel_size(void);

/* Calls do_part(context, i) once for each i < count, in any order and from several threads, and
 * returns when all are done. */
void parallel_for(size_t count, void (*do_part)(void *context, size_t i), void *context);

/* CPU time in ns that the calling thread has used, and the helpers for its calls of parallel_for.
 * CPU limits are deadlines on this clock. */
int64_t parallel_cpu_ns(void);

#endif
