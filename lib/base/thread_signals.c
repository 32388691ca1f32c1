#include "lib/base/thread_signals.h"

#include <pthread.h>

void thread_signals_block(sigset_t *ret_before)
{
    static const int raised_by_instructions[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t signals;
    sigfillset(&signals);
    for (int i = 0; i < 4; i++)
        sigdelset(&signals, raised_by_instructions[i]);
    pthread_sigmask(SIG_SETMASK, &signals, ret_before);
}

void thread_signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
