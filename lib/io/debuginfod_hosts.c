#include "lib/io/debuginfod_hosts.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/debuginfod_retry.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* The number of hosts is limited, because users choose the names of hosts. */
enum { HOSTS_MAX = 256, WAIT_MS = 500 };

struct debuginfod_host {
    char *name; /* NULL: a free slot */
    int64_t owner;
    int visitor_count;
    int64_t last_ns;
    struct debuginfod_breaker breaker;
};

struct debuginfod_hosts {
    pthread_mutex_t lock;
    pthread_cond_t left;
    struct debuginfod_host hosts[HOSTS_MAX];
};

struct debuginfod_hosts *debuginfod_hosts_create(void)
{
    struct debuginfod_hosts *hosts = mem_new(struct debuginfod_hosts, 1);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&hosts->lock, NULL);
    pthread_cond_init(&hosts->left, &attributes);
    pthread_condattr_destroy(&attributes);
    return hosts;
}

void debuginfod_hosts_destroy(struct debuginfod_hosts *hosts)
{
    if (!hosts)
        return;
    for (size_t i = 0; i < HOSTS_MAX; i++)
        mem_free(hosts->hosts[i].name);
    pthread_cond_destroy(&hosts->left);
    pthread_mutex_destroy(&hosts->lock);
    mem_free(hosts);
}

/* The slot of the host, else a free one, or that of the least recently used host without running
 * requests. NULL if all are in use. */
static struct debuginfod_host *find_slot(struct debuginfod_hosts *hosts, int64_t owner,
                                         const char *name)
{
    struct debuginfod_host *slot = NULL;
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        struct debuginfod_host *host = &hosts->hosts[i];
        if (host->name && host->owner == owner && strcmp(host->name, name) == 0)
            return host;
        if (host->visitor_count == 0 && (!slot || host->last_ns < slot->last_ns))
            slot = host;
    }
    if (slot) {
        mem_free(slot->name);
        *slot = (struct debuginfod_host){.name = mem_strdup(name), .owner = owner};
    }
    return slot;
}

static void wait_a_little(struct debuginfod_hosts *hosts)
{
    struct timespec until;
    int64_t until_ns = clock_monotonic_ns() + WAIT_MS * CLOCK_NS_PER_MS;
    until.tv_sec = until_ns / CLOCK_NS_PER_S;
    until.tv_nsec = until_ns % CLOCK_NS_PER_S;
    pthread_cond_timedwait(&hosts->left, &hosts->lock, &until);
}

static enum err_code try_enter(struct debuginfod_hosts *hosts, int64_t owner, const char *name,
                               struct debuginfod_host **ret_host, struct err *err)
{
    struct debuginfod_host *host = find_slot(hosts, owner, name);
    *ret_host = NULL;
    if (!host || host->visitor_count >= DEBUGINFOD_AT_ONCE)
        return ERR_NONE;
    if (!debuginfod_breaker_may(&host->breaker, clock_monotonic_ns()))
        return err_set(err, ERR_BUSY, "%s failed several times and is not tried again for a minute",
                       name);
    host->visitor_count++;
    *ret_host = host;
    return ERR_NONE;
}

enum err_code debuginfod_hosts_enter(struct debuginfod_hosts *hosts, int64_t owner,
                                     const char *name, bool (*may_go_on)(void *context),
                                     void *context, struct debuginfod_host **ret_host,
                                     struct err *err)
{
    enum err_code code;
    for (;;) {
        pthread_mutex_lock(&hosts->lock);
        code = try_enter(hosts, owner, name, ret_host, err);
        if (!code && !*ret_host)
            wait_a_little(hosts);
        pthread_mutex_unlock(&hosts->lock);
        if (code || *ret_host)
            return code;
        if (may_go_on && !may_go_on(context))
            return err_set(err, ERR_CANCELLED, "cancelled: no request waits for %s any more", name);
    }
}

void debuginfod_hosts_leave(struct debuginfod_hosts *hosts, struct debuginfod_host *host,
                            enum debuginfod_visit visit)
{
    pthread_mutex_lock(&hosts->lock);
    host->visitor_count--;
    host->last_ns = clock_monotonic_ns();
    if (visit == DEBUGINFOD_VISIT_GIVEN_UP)
        debuginfod_breaker_forgo(&host->breaker);
    else
        debuginfod_breaker_note(&host->breaker, visit == DEBUGINFOD_VISIT_FAILED, host->last_ns);
    pthread_cond_broadcast(&hosts->left);
    pthread_mutex_unlock(&hosts->lock);
}
