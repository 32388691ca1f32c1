#include "cli/record/delay_notice.h"

#include "cli/terminal.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { PATIENCE_S = 1 };

struct delay_notice {
    const char *what;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    bool is_said;
};

static void *run(void *context)
{
    struct delay_notice *slow = context;
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&slow->lock);
    while (!slow->has_ended && !error)
        error = pthread_cond_timedwait(&slow->ended, &slow->lock, &until);
    slow->is_said = !slow->has_ended;
    /* Past the terminal, which is the other thread's; as one piece. */
    if (slow->is_said)
        fprintf(stderr, "%s\n", slow->what);
    pthread_mutex_unlock(&slow->lock);
    return NULL;
}

/* Signals are for the thread that does the work. */
static int start(struct delay_notice *slow)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = pthread_create(&slow->thread, NULL, run, slow);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void destroy(struct delay_notice *slow)
{
    pthread_cond_destroy(&slow->ended);
    pthread_mutex_destroy(&slow->lock);
    mem_free(slow);
}

struct delay_notice *delay_notice_begin(const struct terminal *terminal, const char *what)
{
    pthread_condattr_t attributes;
    if (!terminal->is_error_terminal || terminal->is_quiet || terminal->is_silent)
        return NULL;
    struct delay_notice *slow = mem_new(struct delay_notice, 1);
    slow->what = what;
    pthread_mutex_init(&slow->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&slow->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start(slow) == 0)
        return slow;
    destroy(slow);
    return NULL;
}

bool delay_notice_end(struct delay_notice *slow)
{
    if (!slow)
        return false;
    pthread_mutex_lock(&slow->lock);
    slow->has_ended = true;
    pthread_cond_signal(&slow->ended);
    pthread_mutex_unlock(&slow->lock);
    pthread_join(slow->thread, NULL);
    const bool is_said = slow->is_said;
    destroy(slow);
    return is_said;
}
