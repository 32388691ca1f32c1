/*
 * The states of a sampled binary (struct candidate), by the response to a query about its build id:
 *
 *   response                                next
 *   --------------------------------------  --------------------------------------------------
 *   the server has names, or a table that   done: known
 *   ours cannot improve
 *   pending: the server itself looks for    query again after 30 s, 60 s, ...; as if missing from
 *   names                                   the 9th time on, and at once with SYMBOL_POLICY_ALL
 *   missing, or ours may be better          build a table
 *
 *   build                                   next
 *   --------------------------------------  --------------------------------------------------
 *   done                                    query again, because another host may have sent one
 *                                           meanwhile; send the table, or done: known
 *   above the limits                        send the debug file if allowed, else done: failed
 *   the file has no names                   done: nameless
 *
 * Errors of the connection or of the server concern all candidates:
 *
 *   error                                   effect
 *   --------------------------------------  --------------------------------------------------
 *   no connection, server busy              all wait, 1 s at first, doubled up to 10 min
 *   token not accepted                      all wait 10 min: a person has to repair it
 *   server without symbol tables            off, 10 min at first, doubled up to 60 min; only this
 *                                           candidate is kept, for the next query
 *   query refused (4xx)                     only this candidate waits, as if pending; then failed
 */
#include "agent/upload/symbol_uploader.h"

#include "agent/process/capabilities.h"
#include "agent/upload/debug_file.h"
#include "agent/upload/symbol_client.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/wait_limit.h"
#include "lib/symbols/symbol_builder.h"
#include "lib/symbols/symbol_table_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    QUEUE_MAX = 64, /* each may hold two files open */
    KNOWN_MAX = 65536,
    ID_BYTES = 2 * SYMBOL_ID_MAX_BYTES + 1,
    NAME_BYTES = 200,
    PENDING_TRIES_MAX = 8,
    LOW_PRIORITY =
        10, /* a tenth of the usual CPU time: with 19, a busy host got no names for minutes */
    BUILD_CPU_S = 120,
    BUILD_WALL_MS = 30 * 60 * 1000, /* long, because of the low priority on a busy host */
    IO_CLASS_IDLE = 3 << 13,        /* IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0) */
    IO_WHO_PROCESS = 1,
};
#define PAUSE_MIN_MS INT64_C(1000)
#define PAUSE_MAX_MS INT64_C(600000)
#define PENDING_MS INT64_C(30000)
/* For errors that a person has to repair. */
#define FORBIDDEN_MS INT64_C(600000)
/* For a server without symbol tables: another kind of server, or a proxy in place of ours for a
 * while.
 */
#define OFF_MIN_MS INT64_C(600000)
#define OFF_MAX_MS INT64_C(3600000)

struct candidate {
    char build_id[ID_BYTES]; /* "": the slot is free */
    char name[NAME_BYTES];
    int fd;
    int debug_fd; /* -1: none */
    off_t bytes;  /* size of the file from which the table is built */
    int64_t next_ms;
    uint32_t tries; /* queries whose response was "pending" or was refused */
};

struct symbol_uploader {
    struct symbol_uploader_options options;
    struct symbol_client *service;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the members up to counts */
    pthread_cond_t changed;
    atomic_bool is_ending;
    bool is_paused;
    bool is_off; /* the server accepts no tables: no binary is wanted until resume_ms */
    bool has_forgotten;
    int64_t resume_ms; /* no query is sent before this time */
    struct candidate queue[QUEUE_MAX];
    struct map_bytes known; /* build ids that were given */
    struct arena *arena;    /* holds these build ids */
    struct symbol_uploader_counts counts;
    /* Used by the thread only: */
    int64_t pause_ms;
    int64_t off_ms;
    bool has_logged_forbidden;
    bool has_logged_off;
};

enum outcome { OUTCOME_DONE, OUTCOME_LATER, OUTCOME_PENDING };

static int64_t now_ms(void)
{
    return clock_monotonic_ns() / CLOCK_NS_PER_MS;
}

static void add_count(struct symbol_uploader *uploader, uint64_t *count, uint64_t more)
{
    pthread_mutex_lock(&uploader->mutex);
    *count += more;
    pthread_mutex_unlock(&uploader->mutex);
}

/* ---- the state of the server ---- */

static uint32_t rank_of(uint32_t quality)
{
    const struct symbol_table_facts facts = {.quality = quality};
    return symbol_quality_rank(&facts);
}

/* Whether the server may have use for a table of ours, before one is built. */
static bool is_wanted(const struct symbol_uploader *uploader,
                      const struct symbol_client_status *status)
{
    const bool has_lines = status->quality_rank >= rank_of(SYMBOL_HAS_LINES | SYMBOL_IS_PARTIAL);
    const bool is_old = status->builder_version < SYMBOL_BUILDER_VERSION;
    if (uploader->options.policy == SYMBOL_POLICY_ALL)
        return !status->has_own_table || !has_lines || is_old;
    return status->state != SYMBOL_CLIENT_READY || (status->has_own_table && !has_lines);
}

static bool is_better(const struct symbol_client_status *status, uint32_t rank)
{
    return !status->has_own_table || rank > status->quality_rank ||
           (rank == status->quality_rank && status->builder_version < SYMBOL_BUILDER_VERSION);
}

/* ---- failures ---- */

static void note_failure(struct symbol_uploader *uploader, const struct candidate *candidate,
                         const struct err *err)
{
    char quoted[2 * ERR_MESSAGE_BYTES], name[2 * NAME_BYTES];
    add_count(uploader, &uploader->counts.failed, 1);
    log_event(LOG_WARN, "no symbol table for a binary", "build_id=%s file=%s why=%s",
              candidate->build_id, log_quote(candidate->name, name, sizeof(name)),
              log_quote(err->message, quoted, sizeof(quoted)));
}

static void note_forbidden(struct symbol_uploader *uploader, enum err_code code,
                           const struct err *err)
{
    char quoted[2 * ERR_MESSAGE_BYTES];
    if (uploader->has_logged_forbidden)
        return;
    uploader->has_logged_forbidden = true;
    log_event(LOG_WARN,
              code == ERR_FORBIDDEN
                  ? "symbol tables cannot be sent: the token needs the scope debuginfo"
                  : "symbol tables cannot be sent: the token is refused or cannot be read",
              "why=%s", log_quote(err->message, quoted, sizeof(quoted)));
}

/* A random time between half of the pause and all of it, so that many agents do not query at once.
 */
static int64_t jittered(const struct symbol_uploader *uploader, int64_t pause_ms)
{
    uint32_t random;
    if (uploader->options.pauses_divided_by)
        pause_ms /= uploader->options.pauses_divided_by;
    digest_random(&random, sizeof(random));
    return pause_ms / 2 + (int64_t)(random % (uint64_t)(pause_ms / 2 + 1));
}

static int64_t doubled(int64_t pause_ms, int64_t max_ms)
{
    return pause_ms * 2 < max_ms ? pause_ms * 2 : max_ms;
}

/* No query is sent for pause_ms, also about binaries that are offered meanwhile. */
static void pause_all(struct symbol_uploader *uploader, int64_t pause_ms)
{
    const int64_t until_ms = now_ms() + pause_ms;
    pthread_mutex_lock(&uploader->mutex);
    uploader->resume_ms = until_ms;
    for (uint32_t i = 0; i < QUEUE_MAX; i++) {
        if (uploader->queue[i].build_id[0] && uploader->queue[i].next_ms < until_ms)
            uploader->queue[i].next_ms = until_ms;
    }
    pthread_mutex_unlock(&uploader->mutex);
}

/* The server has no symbol tables. It is queried again later, because it may be a proxy whose
 * server is being replaced, and restarting many agents for that would be a burden. */
static void turn_off(struct symbol_uploader *uploader, const struct err *err)
{
    char quoted[2 * ERR_MESSAGE_BYTES];
    const int64_t pause_ms = jittered(uploader, uploader->off_ms);
    uploader->off_ms = doubled(uploader->off_ms, OFF_MAX_MS);
    pause_all(uploader, pause_ms);
    pthread_mutex_lock(&uploader->mutex);
    uploader->is_off = true;
    pthread_mutex_unlock(&uploader->mutex);
    if (uploader->has_logged_off)
        return;
    uploader->has_logged_off = true;
    log_event(LOG_WARN, "the server accepts no symbol tables; it is queried again later",
              "server=%s minutes=%d why=%s", uploader->options.access->server,
              (int)(pause_ms / 60000), log_quote(err->message, quoted, sizeof(quoted)));
}

/* A query has succeeded. */
static void note_success(struct symbol_uploader *uploader)
{
    if (uploader->has_logged_off)
        log_event(LOG_INFO, "the server accepts symbol tables again", "server=%s",
                  uploader->options.access->server);
    uploader->pause_ms = PAUSE_MIN_MS;
    uploader->off_ms = OFF_MIN_MS;
    uploader->has_logged_off = uploader->has_logged_forbidden = false;
}

static enum outcome outcome_of(struct symbol_uploader *uploader, const struct candidate *candidate,
                               enum err_code code, const struct err *err)
{
    int64_t pause_ms = jittered(uploader, uploader->pause_ms);
    if (!code || code == ERR_CANCELLED)
        return code ? OUTCOME_LATER : OUTCOME_DONE;
    if (code == ERR_INVALID || code == ERR_TOO_LARGE) {
        note_failure(uploader, candidate, err);
        return OUTCOME_DONE;
    }
    if (code == ERR_UNSUPPORTED) {
        turn_off(uploader, err);
        return OUTCOME_LATER;
    }
    if (code == ERR_FORBIDDEN || code == ERR_UNAUTHENTICATED) {
        note_forbidden(uploader, code, err);
        pause_ms = jittered(uploader, FORBIDDEN_MS);
    } else {
        uploader->pause_ms = doubled(uploader->pause_ms, PAUSE_MAX_MS);
        if (err->retry_after_s * INT64_C(1000) > pause_ms)
            pause_ms = err->retry_after_s * INT64_C(1000) + jittered(uploader, 1000);
    }
    pause_all(uploader, pause_ms);
    return OUTCOME_LATER;
}

/* The outcome of a query that failed. A refused query is repeated a few times, because a proxy in
 * place of the server may refuse anything; other binaries do not wait for it. */
static enum outcome outcome_of_query(struct symbol_uploader *uploader,
                                     const struct candidate *candidate, enum err_code code,
                                     const struct err *err)
{
    const bool is_refused = code == ERR_INVALID || code == ERR_TOO_LARGE;
    return is_refused && candidate->tries < PENDING_TRIES_MAX
               ? OUTCOME_PENDING
               : outcome_of(uploader, candidate, code, err);
}

/* ---- building and sending ---- */

/* An unnamed temporary file; -1: error. */
static int open_work_file(const struct symbol_uploader *uploader)
{
    char path[4096];
    int fd = open(uploader->options.work_folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EOPNOTSUPP)
        return fd;
    snprintf(path, sizeof(path), "%s/.table.XXXXXX", uploader->options.work_folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static enum err_code build_table(struct symbol_uploader *uploader, int input_fd, int table_fd,
                                 struct symbol_builder_report *ret_report, struct err *err)
{
    const struct wait_limit wait_limit = {.is_cancelled = &uploader->is_ending};
    const struct symbol_builder_options options = {.input_fd = input_fd,
                                                   .output_fd = table_fd,
                                                   .is_packed = true,
                                                   .alternate_fd = -1,
                                                   .memory_bytes = uploader->options.memory_bytes,
                                                   .cpu_s = BUILD_CPU_S,
                                                   .wall_ms = BUILD_WALL_MS,
                                                   .wait_limit = &wait_limit};
    if (ftruncate(table_fd, 0) || lseek(table_fd, 0, SEEK_SET))
        return err_set_errno(err, ERR_IO, "truncating the temporary file of a symbol table");
    return symbol_builder_run(&options, ret_report, err);
}

static bool is_above_bounds(enum err_code code)
{
    return code == ERR_TOO_LARGE || code == ERR_TIMEOUT;
}

/* Builds a table from the debug file or, if that has no names, from the binary. */
static enum err_code build_best(struct symbol_uploader *uploader, const struct candidate *candidate,
                                int table_fd, struct symbol_builder_report *ret_report,
                                struct err *err)
{
    enum err_code code = ERR_NOT_FOUND;
    if (candidate->debug_fd >= 0)
        code = build_table(uploader, candidate->debug_fd, table_fd, ret_report, err);
    if (code == ERR_NOT_FOUND || code == ERR_INVALID || code == ERR_UNSUPPORTED)
        code = build_table(uploader, candidate->fd, table_fd, ret_report, err);
    return code;
}

static enum err_code send_file(struct symbol_uploader *uploader, const struct candidate *candidate,
                               const char *kind, int fd, uint64_t *sent_count, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) || status.st_size <= 0)
        return err_set(err, ERR_INVALID, "the file to send is empty");
    const struct symbol_client_file file = {.build_id = candidate->build_id,
                                            .kind = kind,
                                            .name = candidate->name,
                                            .fd = fd,
                                            .bytes = (uint64_t)status.st_size};
    const enum err_code code = symbol_client_send(uploader->service, &file, err);
    if (code)
        return code;
    add_count(uploader, sent_count, 1);
    add_count(uploader, &uploader->counts.sent_bytes, file.bytes);
    log_event(LOG_INFO, "symbols of a binary were sent", "build_id=%s kind=%s bytes=%" PRIu64,
              candidate->build_id, kind, file.bytes);
    return ERR_NONE;
}

/* Sends a built table unless the server has an equal or better one by now from another host. */
static enum outcome send_table(struct symbol_uploader *uploader, const struct candidate *candidate,
                               int table_fd, uint32_t rank)
{
    struct symbol_client_status status;
    struct err err = {0};
    enum err_code code = symbol_client_query(uploader->service, candidate->build_id, &status, &err);
    if (!code && (!is_wanted(uploader, &status) || !is_better(&status, rank))) {
        add_count(uploader, &uploader->counts.known, 1);
        return OUTCOME_DONE;
    }
    if (code)
        return outcome_of_query(uploader, candidate, code, &err);
    code = send_file(uploader, candidate, "table", table_fd, &uploader->counts.sent_tables, &err);
    return outcome_of(uploader, candidate, code, &err);
}

static enum outcome send_debug_file(struct symbol_uploader *uploader,
                                    const struct candidate *candidate, const struct err *why)
{
    struct err err = {0};
    if (!uploader->options.may_send_files || candidate->debug_fd < 0 ||
        !debug_file_is_free_of_code(candidate->debug_fd)) {
        note_failure(uploader, candidate, why);
        return OUTCOME_DONE;
    }
    const enum err_code code = send_file(uploader, candidate, "debuginfo", candidate->debug_fd,
                                         &uploader->counts.sent_files, &err);
    return outcome_of(uploader, candidate, code, &err);
}

static enum outcome build_and_send(struct symbol_uploader *uploader,
                                   const struct candidate *candidate)
{
    struct symbol_builder_report report = {0};
    struct err err = {0};
    fd_auto table_fd = open_work_file(uploader);
    if (table_fd < 0) {
        err_set_errno(&err, ERR_IO, "creating a temporary file for a symbol table");
        return outcome_of(uploader, candidate, ERR_IO, &err);
    }
    const enum err_code code = build_best(uploader, candidate, table_fd, &report, &err);
    if (!code)
        return send_table(uploader, candidate, table_fd, rank_of(report.quality));
    if (is_above_bounds(code))
        return send_debug_file(uploader, candidate, &err);
    if (code == ERR_NOT_FOUND)
        add_count(uploader, &uploader->counts.nameless, 1);
    else if (code != ERR_CANCELLED)
        note_failure(uploader, candidate, &err);
    return code == ERR_CANCELLED ? OUTCOME_LATER : OUTCOME_DONE;
}

static enum outcome process_candidate(struct symbol_uploader *uploader,
                                      const struct candidate *candidate)
{
    struct symbol_client_status status;
    struct err err = {0};
    const enum err_code code =
        symbol_client_query(uploader->service, candidate->build_id, &status, &err);
    if (code)
        return outcome_of_query(uploader, candidate, code, &err);
    note_success(uploader);
    if (!is_wanted(uploader, &status)) {
        add_count(uploader, &uploader->counts.known, 1);
        return OUTCOME_DONE;
    }
    if (status.state == SYMBOL_CLIENT_PENDING &&
        uploader->options.policy == SYMBOL_POLICY_MISSING && candidate->tries < PENDING_TRIES_MAX)
        return OUTCOME_PENDING;
    return build_and_send(uploader, candidate);
}

/* ---- the thread ---- */

/* Small files come first, so that none waits for minutes for a huge library. */
static bool is_before(const struct candidate *a, const struct candidate *b, int64_t ms)
{
    const bool is_due = a->next_ms <= ms, other_is_due = b->next_ms <= ms;
    return is_due && other_is_due ? a->bytes < b->bytes : a->next_ms < b->next_ms;
}

/* The next candidate that is due. NULL: there is none; *ret_wait_ms is the time until one is, -1:
 * none will be due. */
static struct candidate *next_candidate(struct symbol_uploader *uploader, int64_t *ret_wait_ms)
{
    const int64_t ms = now_ms();
    struct candidate *next = NULL;
    for (uint32_t i = 0; i < QUEUE_MAX; i++) {
        struct candidate *candidate = &uploader->queue[i];
        if (candidate->build_id[0] && (!next || is_before(candidate, next, ms)))
            next = candidate;
    }
    *ret_wait_ms = next ? next->next_ms - ms : -1;
    if (!next || *ret_wait_ms > 0 || uploader->is_paused) {
        if (uploader->is_paused)
            *ret_wait_ms = -1;
        return NULL;
    }
    return next;
}

static void wait_for(struct symbol_uploader *uploader, int64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + timeout_ms % 1000 * CLOCK_NS_PER_MS;
    until.tv_sec += timeout_ms / 1000 + ns / CLOCK_NS_PER_S;
    until.tv_nsec = ns % CLOCK_NS_PER_S;
    if (timeout_ms < 0)
        pthread_cond_wait(&uploader->changed, &uploader->mutex);
    else
        pthread_cond_timedwait(&uploader->changed, &uploader->mutex, &until);
}

/* Whether the server is assumed to accept no tables. */
static bool is_off(struct symbol_uploader *uploader)
{
    if (uploader->is_off && now_ms() >= uploader->resume_ms)
        uploader->is_off = false;
    return uploader->is_off;
}

static void forget_known(struct symbol_uploader *uploader)
{
    map_bytes_fini(&uploader->known);
    uploader->known = (struct map_bytes){0};
    arena_destroy(uploader->arena);
    uploader->arena = arena_create();
}

/* Remembers a build id. If there are too many, all are forgotten, and queried again when they are
 * sampled. */
static void add_known(struct symbol_uploader *uploader, const char *build_id)
{
    if (uploader->known.count >= KNOWN_MAX)
        forget_known(uploader);
    map_bytes_add(&uploader->known, span_text(arena_strdup(uploader->arena, build_id)), 0);
}

static void clear_candidate(struct symbol_uploader *uploader, struct candidate *candidate)
{
    os_close(candidate->fd);
    if (candidate->debug_fd >= 0)
        os_close(candidate->debug_fd);
    *candidate = (struct candidate){.fd = -1, .debug_fd = -1};
    uploader->counts.waiting--;
}

/* Drops all candidates except kept (NULL: all), because open files keep their file systems busy.
 * Binaries have to be offered again later. */
static void forget_others(struct symbol_uploader *uploader, const struct candidate *kept)
{
    for (uint32_t i = 0; i < QUEUE_MAX; i++) {
        if (uploader->queue[i].build_id[0] && &uploader->queue[i] != kept)
            clear_candidate(uploader, &uploader->queue[i]);
    }
    forget_known(uploader);
    if (kept)
        add_known(uploader, kept->build_id);
    uploader->has_forgotten = true;
}

static void apply_outcome(struct symbol_uploader *uploader, struct candidate *candidate,
                          enum outcome outcome)
{
    if (outcome == OUTCOME_DONE) {
        clear_candidate(uploader, candidate);
    } else if (is_off(uploader)) {
        forget_others(uploader, candidate);
    } else if (outcome == OUTCOME_PENDING) {
        candidate->next_ms = now_ms() + jittered(uploader, PENDING_MS << candidate->tries);
        candidate->tries++;
    }
}

/* Lowers the priority of the thread for CPU and disk; the child process inherits it. */
static void lower_priority(void)
{
    const int thread_id = (int)syscall(SYS_gettid);
    (void)setpriority(PRIO_PROCESS, (id_t)thread_id, LOW_PRIORITY);
    (void)syscall(SYS_ioprio_set, IO_WHO_PROCESS, 0, IO_CLASS_IDLE);
    (void)capabilities_keep(
        CAPABILITY_BIT(CAPABILITY_DAC_READ_SEARCH)); /* to read the token file */
}

static void *run_thread(void *context)
{
    struct symbol_uploader *uploader = context;
    int64_t wait_ms;
    lower_priority();
    pthread_mutex_lock(&uploader->mutex);
    while (!atomic_load(&uploader->is_ending)) {
        struct candidate *candidate = next_candidate(uploader, &wait_ms);
        if (!candidate) {
            wait_for(uploader, wait_ms);
            continue;
        }
        /* Only this thread changes the candidate until apply_outcome. */
        pthread_mutex_unlock(&uploader->mutex);
        const enum outcome outcome = process_candidate(uploader, candidate);
        pthread_mutex_lock(&uploader->mutex);
        apply_outcome(uploader, candidate, outcome);
    }
    pthread_mutex_unlock(&uploader->mutex);
    return NULL;
}

/* ---- life ---- */

static void free_uploader(struct symbol_uploader *uploader)
{
    forget_others(uploader, NULL);
    symbol_client_destroy(uploader->service);
    pthread_cond_destroy(&uploader->changed);
    pthread_mutex_destroy(&uploader->mutex);
    map_bytes_fini(&uploader->known);
    arena_destroy(uploader->arena);
    mem_free(uploader);
}

static struct symbol_uploader *create_uploader(const struct symbol_uploader_options *options)
{
    struct symbol_uploader *uploader = mem_new(struct symbol_uploader, 1);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&uploader->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&uploader->mutex, NULL);
    uploader->options = *options;
    uploader->arena = arena_create();
    uploader->pause_ms = PAUSE_MIN_MS;
    uploader->off_ms = OFF_MIN_MS;
    return uploader;
}

enum err_code symbol_uploader_start(const struct symbol_uploader_options *options,
                                    struct symbol_uploader **ret_uploader, struct err *err)
{
    struct symbol_uploader *uploader = create_uploader(options);
    enum err_code code =
        symbol_client_create(options->access, &uploader->is_ending, &uploader->service, err);
    if (!code && pthread_create(&uploader->thread, NULL, run_thread, uploader))
        code = err_set(err, ERR_INTERNAL, "no thread could be started");
    if (code) {
        free_uploader(uploader);
        return code;
    }
    *ret_uploader = uploader;
    return ERR_NONE;
}

void symbol_uploader_stop(struct symbol_uploader *uploader)
{
    if (!uploader)
        return;
    pthread_mutex_lock(&uploader->mutex);
    atomic_store(&uploader->is_ending, true);
    pthread_cond_signal(&uploader->changed);
    pthread_mutex_unlock(&uploader->mutex);
    pthread_join(uploader->thread, NULL);
    free_uploader(uploader);
}

/* ---- offers of the agent ---- */

bool symbol_uploader_has_forgotten(struct symbol_uploader *uploader)
{
    pthread_mutex_lock(&uploader->mutex);
    const bool has_forgotten = uploader->has_forgotten && !is_off(uploader);
    uploader->has_forgotten = uploader->has_forgotten && !has_forgotten;
    pthread_mutex_unlock(&uploader->mutex);
    return has_forgotten;
}

enum symbol_want symbol_uploader_wants(struct symbol_uploader *uploader, const char *build_id)
{
    enum symbol_want want = SYMBOL_WANT_NOW;
    pthread_mutex_lock(&uploader->mutex);
    if (!build_id[0] || strlen(build_id) >= ID_BYTES ||
        map_bytes_find(&uploader->known, span_text(build_id)) != MAP_ABSENT)
        want = SYMBOL_WANT_NEVER;
    else if (uploader->counts.waiting >= QUEUE_MAX || is_off(uploader))
        want = SYMBOL_WANT_LATER;
    pthread_mutex_unlock(&uploader->mutex);
    return want;
}

/* The last part of a path, with '?' in place of other than printable ASCII. */
static void copy_name(const char *path, char name[NAME_BYTES])
{
    const char *slash = strrchr(path, '/');
    snprintf(name, NAME_BYTES, "%s", slash ? slash + 1 : path);
    for (char *at = name; *at; at++)
        *at = (char)(*at < ' ' || *at > '~' ? '?' : *at);
}

void symbol_uploader_give(struct symbol_uploader *uploader, const char *build_id, const char *path,
                          int fd, int debug_fd)
{
    struct candidate candidate = {.fd = fd, .debug_fd = debug_fd, .next_ms = now_ms()};
    struct stat status;
    if (fstat(debug_fd >= 0 ? debug_fd : fd, &status) == 0)
        candidate.bytes = status.st_size;
    snprintf(candidate.build_id, sizeof(candidate.build_id), "%s", build_id);
    copy_name(path, candidate.name);
    pthread_mutex_lock(&uploader->mutex);
    uint32_t slot = 0;
    while (slot < QUEUE_MAX && uploader->queue[slot].build_id[0])
        slot++;
    if (candidate.next_ms < uploader->resume_ms)
        candidate.next_ms = uploader->resume_ms;
    uploader->counts.waiting++;
    if (slot == QUEUE_MAX) {
        clear_candidate(uploader, &candidate);
    } else {
        uploader->queue[slot] = candidate;
        uploader->counts.queried++;
        add_known(uploader, build_id);
        pthread_cond_signal(&uploader->changed);
    }
    pthread_mutex_unlock(&uploader->mutex);
}

void symbol_uploader_pause(struct symbol_uploader *uploader, bool is_paused)
{
    pthread_mutex_lock(&uploader->mutex);
    uploader->is_paused = is_paused;
    pthread_cond_signal(&uploader->changed);
    pthread_mutex_unlock(&uploader->mutex);
}

void symbol_uploader_count(struct symbol_uploader *uploader,
                           struct symbol_uploader_counts *ret_counts)
{
    pthread_mutex_lock(&uploader->mutex);
    *ret_counts = uploader->counts;
    pthread_mutex_unlock(&uploader->mutex);
}
