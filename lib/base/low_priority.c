#include "lib/base/low_priority.h"

#include "lib/base/thread_signals.h"

#include <pthread.h>
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
    sigset_t before;
    thread_signals_block(&before);
    const int failure = pthread_create(&thread, NULL, run_call, &call);
    thread_signals_restore(&before);
    if (failure)
        function(context);
    else
        pthread_join(thread, NULL);
}
