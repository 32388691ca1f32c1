/*
 * crew: work in parts that wait for nothing of each other, done by several threads at once.
 *
 * The caller does its share; as many others help as there are processors free of other crews, so
 * that all crews together never keep more threads busy than the machine has processors besides
 * their callers. Where none is free the caller does all. Helpers are made for the call and are gone
 * when it returns, so that it is for parts that take a millisecond and more. Threads: any.
 */
#ifndef LIB_BASE_PARALLEL_H
#define LIB_BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

enum { PARALLEL_MOST = 8 };

/* So many parts can be under way at once: one for each processor that the machine had at first,
 * PARALLEL_MOST at most. */
size_t parallel_size(void);

/* Calls do_part(context, i) once for each i < count, in no certain order and from several threads,
 * and returns when all are done. */
void parallel_work(size_t count, void (*do_part)(void *context, size_t i), void *context);

/* Processor time that the calling thread has used, and helpers for it: what limits are about. */
int64_t parallel_cpu_ns(void);

#endif
