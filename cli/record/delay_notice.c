#include "cli/record/delay_notice.h"

#include "cli/terminal.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { NOTICE_DELAY_S = 1 };

struct delay_notice {
    const char *what;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    bool is_printed;
};

static void *print_when_slow(void *context)
{
    struct delay_notice *notice = context;
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += NOTICE_DELAY_S;
    pthread_mutex_lock(&notice->lock);
    while (!notice->has_ended && !error)
        error = pthread_cond_timedwait(&notice->ended, &notice->lock, &until);
    notice->is_printed = !notice->has_ended;
    /* Writes the line in one call and without struct terminal, which belongs to the other
     * thread. */
    if (notice->is_printed)
        fprintf(stderr, "%s\n", notice->what);
    pthread_mutex_unlock(&notice->lock);
    return NULL;
}

/* The thread blocks all signals, so that the main thread handles them. */
static int start_thread(struct delay_notice *notice)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = pthread_create(&notice->thread, NULL, print_when_slow, notice);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void destroy(struct delay_notice *notice)
{
    pthread_cond_destroy(&notice->ended);
    pthread_mutex_destroy(&notice->lock);
    mem_free(notice);
}

struct delay_notice *delay_notice_begin(const struct terminal *terminal, const char *what)
{
    pthread_condattr_t attributes;
    if (!terminal->is_error_terminal || terminal->is_quiet || terminal->is_silent)
        return NULL;
    struct delay_notice *notice = mem_new(struct delay_notice, 1);
    notice->what = what;
    pthread_mutex_init(&notice->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&notice->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start_thread(notice) == 0)
        return notice;
    destroy(notice);
    return NULL;
}

bool delay_notice_end(struct delay_notice *notice)
{
    if (!notice)
        return false;
    pthread_mutex_lock(&notice->lock);
    notice->has_ended = true;
    pthread_cond_signal(&notice->ended);
    pthread_mutex_unlock(&notice->lock);
    pthread_join(notice->thread, NULL);
    const bool is_printed = notice->is_printed;
    destroy(notice);
    return is_printed;
}
