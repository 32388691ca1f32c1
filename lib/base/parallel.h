/*
 * parallel: runs the independent parts of one computation on several threads.
 *
 * The calling thread works too. Helper threads are added as long as the helpers of all calls
 * together are fewer than the processors minus one, so that concurrent calls do not use more
 * threads than the machine has processors, besides their callers. Without a free processor the
 * caller does all parts. Helpers are created for the call and end before it returns, so use it for
 * parts that take a millisecond or more. Threads: any.
 */
#ifndef LIB_BASE_PARALLEL_H
#define LIB_BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

enum { PARALLEL_MAX_THREADS = 8 };

/* The number of parts that can run at once: the number of processors when it was first called,
 * at most PARALLEL_MAX_THREADS. */
size_t parallel_size(void);

/* Calls do_part(context, i) once for each i < count, in any order and from several threads, and
 * returns when all are done. */
void parallel_for(size_t count, void (*do_part)(void *context, size_t i), void *context);

/* CPU time that the calling thread and the helpers of its calls have used. CPU limits are
 * checked against it. */
int64_t parallel_cpu_ns(void);

#endif
