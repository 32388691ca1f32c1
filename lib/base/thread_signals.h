/*
 * thread_signals: starts threads that handle no signals sent to the process.
 *
 *     sigset_t before;
 *     thread_signals_block(&before);
 *     pthread_create(…);
 *     thread_signals_restore(&before);
 *
 * A new thread inherits the blocked signals. Signals that an instruction raises, such as SIGBUS,
 * are not blocked: otherwise the kernel would end the process for them in spite of a handler
 * (mapped_file.h).
 * Threads: any; the functions concern the calling thread.
 */
#ifndef LIB_BASE_THREAD_SIGNALS_H
#define LIB_BASE_THREAD_SIGNALS_H

#include <signal.h>

void thread_signals_block(sigset_t *ret_before);
void thread_signals_restore(const sigset_t *before);

#endif
