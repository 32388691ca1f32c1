#include "store/maintain/maintenance.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/writer.h"
#include "store/maintain/claimed_work.h"
#include "store/maintain/tenant_costs.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum { ROUND_MS = 500, TIDY_S = 2, EXPIRE_S = 20 };

struct maintenance {
    struct maintenance_options options;
    pthread_t thread;
    uint64_t rotation; /* claims so far, from a random number on */
    struct tenant_costs costs;
    int64_t tidy_ns;       /* monotonic clock: when catalogue_tidy is due */
    int64_t expire_ns;     /* when catalogue_expire is due */
    pthread_mutex_t mutex; /* guards should_stop */
    pthread_cond_t wake;
    bool should_stop;
};

static bool should_stop(struct maintenance *maintenance)
{
    pthread_mutex_lock(&maintenance->mutex);
    const bool stops = maintenance->should_stop;
    pthread_mutex_unlock(&maintenance->mutex);
    return stops;
}

static void report_failure(struct maintenance *maintenance, const char *work, const struct err *err)
{
    if (maintenance->options.report)
        maintenance->options.report(maintenance->options.report_context, work, err);
}

/* ---- by the clock ---- */

static bool is_due(int64_t *due_ns, int64_t every_s)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns < *due_ns)
        return false;
    *due_ns = now_ns + every_s * CLOCK_NS_PER_S;
    return true;
}

/* Work that is not claimed. It also runs between merges, which may be due without end. */
static void run_timed_work(struct maintenance *maintenance)
{
    const struct maintenance_options *options = &maintenance->options;
    struct err err;
    writer_end_doubted(options->writer, clock_monotonic_ns());
    if (is_due(&maintenance->tidy_ns, TIDY_S) &&
        catalogue_tidy(options->jobs_database, writer_peek(options->writer), options->query_time_s,
                       options->max_batch_ids, &err))
        report_failure(maintenance, "catalogue", &err);
    if (is_due(&maintenance->expire_ns, EXPIRE_S) &&
        catalogue_expire(options->jobs_database, options->retention_s, &err))
        report_failure(maintenance, "retention", &err);
}

/* ---- the thread ---- */

/* Runs one merge; *ret_did false: none was due. */
static enum err_code compact_once(struct maintenance *maintenance, bool *ret_did, struct err *err)
{
    const struct maintenance_options *options = &maintenance->options;
    arena_auto arena = arena_create();
    const int64_t begin_ns = clock_monotonic_ns();
    int64_t costly[TENANT_COSTS_COUNT];
    const struct catalogue_claim_order order = {
        .rotation = maintenance->rotation++,
        .costly = costly,
        .costly_count = tenant_costs_list(&maintenance->costs, begin_ns, costly),
        .only_needed = !maintenance_options_has_space(options, false)};
    struct catalogue_claim claim;
    int64_t writer_id;
    *ret_did = false;
    enum err_code code = writer_get(options->writer, &writer_id, err);
    if (!code)
        code = catalogue_claim(options->jobs_database, arena, writer_id, options->retention_s,
                               &order, &claim, err);
    if (code || !claim.count)
        return code;
    *ret_did = true;
    bool is_costly = false;
    for (uint32_t i = 0; i < order.costly_count; i++)
        is_costly |= costly[i] == claim.tenant_id;
    code = claimed_work_do(options, writer_id, &claim, is_costly, err);
    const int64_t end_ns = clock_monotonic_ns();
    tenant_costs_add(&maintenance->costs, claim.tenant_id, end_ns - begin_ns, end_ns);
    if (claim.level) /* merging blocks takes much memory that is not needed soon again */
        mem_trim();
    return code;
}

/* Merges until nothing is due. */
static void merge_until_idle(struct maintenance *maintenance)
{
    bool did = true;
    while (did && !should_stop(maintenance)) {
        struct err err;
        run_timed_work(maintenance);
        enum err_code code = compact_once(maintenance, &did, &err);
        /* the lease or the writer was lost: other servers do the work */
        if (code == ERR_CONFLICT) {
            writer_lose(maintenance->options.writer, writer_peek(maintenance->options.writer));
            return;
        }
        if (code) {
            report_failure(maintenance, "compaction", &err);
            return;
        }
    }
}

static bool wait_for_round(struct maintenance *maintenance)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ROUND_MS * CLOCK_NS_PER_MS;
    until.tv_sec += until.tv_nsec / CLOCK_NS_PER_S;
    until.tv_nsec %= CLOCK_NS_PER_S;
    pthread_mutex_lock(&maintenance->mutex);
    while (!maintenance->should_stop)
        if (pthread_cond_timedwait(&maintenance->wake, &maintenance->mutex, &until) != 0)
            break;
    const bool goes_on = !maintenance->should_stop;
    pthread_mutex_unlock(&maintenance->mutex);
    return goes_on;
}

static void *maintenance_main(void *context)
{
    struct maintenance *maintenance = context;
    while (wait_for_round(maintenance))
        merge_until_idle(maintenance);
    return NULL;
}

enum err_code maintenance_create(const struct maintenance_options *options,
                                 struct maintenance **ret_maintenance, struct err *err)
{
    struct maintenance *maintenance = mem_new(struct maintenance, 1);
    pthread_condattr_t attributes;
    maintenance->options = *options;
    digest_random(&maintenance->rotation,
                  /* a random start, so that short-lived servers try all kinds */
                  sizeof(maintenance->rotation));
    pthread_mutex_init(&maintenance->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&maintenance->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&maintenance->thread, NULL, maintenance_main, maintenance) != 0) {
        mem_free(maintenance);
        return err_set(err, ERR_INTERNAL, "cannot start the thread that compacts");
    }
    *ret_maintenance = maintenance;
    return ERR_NONE;
}

void maintenance_destroy(struct maintenance *maintenance)
{
    if (!maintenance)
        return;
    pthread_mutex_lock(&maintenance->mutex);
    maintenance->should_stop = true;
    pthread_cond_signal(&maintenance->wake);
    pthread_mutex_unlock(&maintenance->mutex);
    pthread_join(maintenance->thread, NULL);
    pthread_cond_destroy(&maintenance->wake);
    pthread_mutex_destroy(&maintenance->mutex);
    mem_free(maintenance);
}
