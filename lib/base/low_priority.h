/*
 * low_priority: runs a function on a thread that yields the processors to all other threads.
 *
 * Hashing of passwords and rendering for anonymous clients take CPU time that an attacker can
 * request at will. At nice LOW_PRIORITY_NICE such work takes the processors that are idle, and
 * about a tenth of one that ordinary requests compete for. A thread cannot raise its priority again
 * without CAP_SYS_NICE, so each call has a thread of its own; creating one takes about 30 us, so
 * use it for calls of a millisecond or more. The function must not call parallel_for,
 * whose helpers have normal priority. Threads: any.
 */
#ifndef LIB_BASE_LOW_PRIORITY_H
#define LIB_BASE_LOW_PRIORITY_H

/* For work that an attacker may request. */
enum { LOW_PRIORITY_NICE = 10 };

/* Calls function(context) on a thread whose nice value is higher by nice, and returns when function
 * has returned. If no thread can be created, the calling thread runs it at its own priority. */
void low_priority_call(int nice, void (*function)(void *context), void *context);

#endif
