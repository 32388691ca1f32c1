#include "lib/base/low_priority.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

struct call {
    int nice;
    void (*function)(void *context);
    void *context;
};

/* On Linux a nice value belongs to a thread; 0 is the calling thread. */
static void *run_call(void *argument)
{
    struct call *call = argument;
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + call->nice);
    call->function(call->context);
    return NULL;
}

void low_priority_call(int nice, void (*function)(void *context), void *context)
{
    struct call call = {.nice = nice, .function = function, .context = context};
    pthread_t thread;
    /* Only the main thread handles signals. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(&thread, NULL, run_call, &call);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure)
        function(context);
    else
        pthread_join(thread, NULL);
}
