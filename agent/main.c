/* perfolio-agent: samples all the time, and sends a batch every few seconds. */
#include "agent/agent.h"
#include "agent/labels/pods.h"
#include "agent/labels/process_labels.h"
#include "agent/labels/relabel.h"
#include "agent/ops/doctor.h"
#include "agent/ops/http_monitor.h"
#include "agent/ops/metrics.h"
#include "agent/process/capabilities.h"
#include "agent/process/procfs_file.h"
#include "agent/settings.h"
#include "agent/unwind/show_unwind.h"
#include "agent/upload/debug_file.h"
#include "agent/upload/profile_uploader.h"
#include "agent/upload/spool.h"
#include "agent/upload/symbol_uploader.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/digest.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    POLL_MS = 200,
    SETTLED_POLL_MS = 1000, /* each look costs a tenth of a millisecond: all caches are cold */
    BATCH_MAX_BYTES = 256 << 20,
    LAST_PATIENCE_MS = 3000,
    REPORT_S = 60,
    PUBLISH_S = 1,
    METRICS_MAX_BYTES = 64 << 10,
    PLACES_SAID = 5,
    PLACES_TEXT_BYTES = 2048,
    HALVINGS_MAX = 3, /* of a window that is too large for one batch */
};

/* The one flag that signals set. */
static volatile sig_atomic_t is_ending;

static void note_signal(int number)
{
    (void)number;
    is_ending = 1;
}

struct service {
    struct settings settings;
    struct agent *agent;
    struct spool *spool;
    struct profile_uploader *uploader; /* NULL: offline */
    struct symbol_uploader *symbols;   /* NULL: none are sent */
    struct http_monitor *monitor;      /* NULL: no monitor address is set */
    uint64_t lost_batches;             /* could not be made or kept */
    int64_t refusal_ns;                /* when one was last said; 0: none was */
    int64_t left_out_ns;               /* the same of names */
};

/* ---- batches ---- */

static enum err_code keep_batch(struct service *service, const struct window_result *window,
                                const struct profile *profile, struct err *err)
{
    buf_auto raw, packed;
    buf_init(&raw, BATCH_MAX_BYTES);
    buf_init(&packed, SPOOL_BATCH_MAX_BYTES);
    enum err_code code = otlp_encode(profile, window->resources, window->resource_count, &raw, err);
    if (!code)
        code = compress_zstd(buf_span(&raw), COMPRESS_ZSTD_DEFAULT, &packed, err);
    return code ? code : spool_put(service->spool, buf_span(&packed), err);
}

static void lose_batch(struct service *service, const struct err *err)
{
    char quoted[2 * ERR_MESSAGE_BYTES];
    service->lost_batches++;
    log_event(LOG_ERROR, "a batch is lost", "why=%s",
              log_quote(err->message, quoted, sizeof(quoted)));
}

/* So many halvings may be needed: tables fit a batch, as each owner has his share of them, and
 * stacks, of which a batch has those of its samples, need not. */
static void keep(struct service *service, const struct window_result *window,
                 const struct profile *profile, uint32_t halvings)
{
    struct err err;
    const uint32_t half = profile->sample_count / 2;
    const enum err_code code = keep_batch(service, window, profile, &err);
    if (code == ERR_TOO_LARGE && halvings && half) {
        const struct profile first = profile_samples(profile, 0, half),
                             second = profile_samples(profile, half, profile->sample_count - half);
        keep(service, window, &first, halvings - 1);
        keep(service, window, &second, halvings - 1);
    } else if (code) {
        lose_batch(service, &err);
    }
}

static void send_window(struct service *service)
{
    struct window_result window;
    struct err err;
    if (agent_take(service->agent, &window, &err)) {
        lose_batch(service, &err);
        return;
    }
    if (window.resource_count)
        keep(service, &window, window.profile, HALVINGS_MAX);
    window_result_fini(&window);
    if (service->uploader)
        profile_uploader_wake(service->uploader);
}

/* Every stack that is not whole has a reason and a place. */
static void report_stops(const struct agent *agent, const struct agent_counts *counts)
{
    buf_auto reasons, places;
    char quoted[4096], quoted_places[4 * PLACES_TEXT_BYTES];
    buf_init(&reasons, 2048);
    buf_init(&places, PLACES_TEXT_BYTES);
    const uint64_t count = agent_append_stops(counts, &reasons);
    agent_append_failure_sites(agent, PLACES_SAID, &places);
    buf_append_byte(&reasons, 0);
    buf_append_byte(&places, 0);
    if (count && !buf_failed(&reasons) && !buf_failed(&places))
        log_event(LOG_INFO, "stacks that end before their root",
                  "count=%" PRIu64 " reasons=%s places=%s", count,
                  log_quote((const char *)reasons.data, quoted, sizeof(quoted)),
                  log_quote((const char *)places.data, quoted_places, sizeof(quoted_places)));
}

static void report_interpreters(const struct agent_counts *counts)
{
    buf_auto text;
    char quoted[4096];
    buf_init(&text, 2048);
    interpreter_counts_append(&counts->interpreters, &text);
    buf_append_byte(&text, 0);
    if (text.size > 1 && !buf_failed(&text))
        log_event(LOG_INFO, "interpreters", "frames=%" PRIu64 " processes=%s",
                  counts->interpreted_frames,
                  log_quote((const char *)text.data, quoted, sizeof(quoted)));
}

static void report_refusals(const struct agent_counts *counts)
{
    if (counts->refused)
        log_event(LOG_INFO, "what did not fit",
                  "processes=%" PRIu64 " mappings=%" PRIu64 " names_of_code=%" PRIu64
                  " waits=%" PRIu64 " unwind_tables=%" PRIu64,
                  counts->refused_processes, counts->refused_mappings, counts->refused_names,
                  counts->refused_waits, counts->refused_tables);
}

struct counts {
    struct agent_counts agent;
    struct spool_counts spool;
    struct profile_uploader_counts uploader;
    struct symbol_uploader_counts symbols;
};

static void count(const struct service *service, struct counts *ret_counts)
{
    ret_counts->uploader = (struct profile_uploader_counts){0};
    ret_counts->symbols = (struct symbol_uploader_counts){0};
    if (service->symbols)
        symbol_uploader_count(service->symbols, &ret_counts->symbols);
    agent_count(service->agent, &ret_counts->agent);
    spool_count(service->spool, &ret_counts->spool);
    if (service->uploader)
        profile_uploader_count(service->uploader, &ret_counts->uploader);
}

static void report(const struct service *service)
{
    struct counts counts;
    count(service, &counts);
    log_event(LOG_INFO, "so far",
              "samples=%" PRIu64 " lost_samples=%" PRIu64 " lost_events=%" PRIu64
              " processes=%u mappings=%u binaries=%u unread_binaries=%u sent=%" PRIu64
              " refused_batches=%" PRIu64 " kept=%" PRIu64 " waiting=%u dropped=%" PRIu64
              " lost_batches=%" PRIu64 " memory=%" PRIu64 " symbols_sent=%" PRIu64,
              counts.agent.samples, counts.agent.lost_samples, counts.agent.lost_events,
              counts.agent.processes, counts.agent.mappings, counts.agent.binaries,
              counts.agent.unread_binaries, counts.uploader.sent_batches,
              counts.uploader.refused_batches, counts.spool.put_batches, counts.spool.batches,
              counts.spool.dropped_batches, service->lost_batches, counts.agent.memory_bytes,
              counts.symbols.sent_tables);
    report_refusals(&counts.agent);
    report_stops(service->agent, &counts.agent);
    report_interpreters(&counts.agent);
}

static void publish(const struct service *service)
{
    struct counts counts;
    buf_auto text;
    buf_init(&text, METRICS_MAX_BYTES);
    count(service, &counts);
    metrics_append(&(struct metrics){.agent = &counts.agent,
                                     .spool = &counts.spool,
                                     .uploader = &counts.uploader,
                                     .symbols = &counts.symbols,
                                     .lost_batches = service->lost_batches,
                                     .is_offline = service->settings.is_offline},
                   &text);
    http_monitor_publish(service->monitor, buf_span(&text));
}

/* A tenth more or less, so that agents that were started together do not send together. */
static int64_t next_window_ns(const struct service *service)
{
    const int64_t interval_ns = (int64_t)service->settings.interval_s * CLOCK_NS_PER_S;
    uint32_t random;
    digest_random(&random, sizeof(random));
    return clock_monotonic_ns() + interval_ns - interval_ns / 10 +
           (int64_t)((uint64_t)interval_ns / 5 * (random % 1000) / 1000);
}

static void run(struct service *service)
{
    int64_t window_ns = next_window_ns(service);
    int64_t report_ns = clock_monotonic_ns();
    int64_t publish_ns = 0;
    int64_t memory_ns = 0;
    while (!is_ending) {
        agent_poll(service->agent, agent_is_settled(service->agent) ? SETTLED_POLL_MS : POLL_MS);
        if (service->symbols && symbol_uploader_has_forgotten(service->symbols))
            agent_report_binaries_again(service->agent);
        const int64_t now_ns = clock_monotonic_ns();
        if (now_ns >= window_ns || agent_is_full(service->agent)) {
            send_window(service);
            window_ns = next_window_ns(service);
        }
        if (now_ns - report_ns >= REPORT_S * CLOCK_NS_PER_S) {
            report(service);
            report_ns = now_ns;
        }
        if (service->symbols && now_ns >= memory_ns) {
            struct agent_counts counts;
            agent_count(service->agent, &counts);
            symbol_uploader_pause(service->symbols, counts.is_short_of_memory);
            memory_ns = now_ns + CLOCK_NS_PER_S;
        }
        if (service->monitor && now_ns >= publish_ns) {
            publish(service);
            publish_ns = now_ns + PUBLISH_S * CLOCK_NS_PER_S;
        }
    }
    agent_stop(service->agent);
    send_window(service);
    report(service);
}

/* ---- life ---- */

/* All are counted; of many, one a minute is said. */
static bool is_to_be_said(int64_t *said_ns)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (*said_ns && now_ns - *said_ns < REPORT_S * CLOCK_NS_PER_S)
        return false;
    *said_ns = now_ns;
    return true;
}

static void say_refusal(void *context, const char *path)
{
    struct service *service = context;
    char quoted[4096];
    if (!is_to_be_said(&service->refusal_ns))
        return;
    log_event(
        LOG_WARN,
        "there is no room, or no time, for all of a file's unwind table: some stacks end in it",
        "path=%s", log_quote(path, quoted, sizeof(quoted)));
}

static void say_left_out(void *context, uint32_t process_id, const char *name)
{
    struct service *service = context;
    char quoted[256];
    if (is_to_be_said(&service->left_out_ns))
        log_event(LOG_WARN,
                  "not all that a user's processes, or one of root's, bring fits a batch: some "
                  "is " WINDOW_NAME_LEFT_OUT,
                  "pid=%" PRIu32 " name=%s", process_id, log_quote(name, quoted, sizeof(quoted)));
}

/* A binary that was sampled: its file is opened while a process has it. */
static bool give_binary(void *context, const struct agent *agent, const struct agent_binary *binary)
{
    const struct service *service = context;
    if (!binary->build_id[0])
        return true; /* the server knows files by their build ids */
    const enum symbol_want want = symbol_uploader_wants(service->symbols, binary->build_id);
    if (want != SYMBOL_WANT_NOW)
        return want == SYMBOL_WANT_NEVER;
    const int fd = agent_open_binary(agent, binary);
    if (fd >= 0)
        symbol_uploader_give(service->symbols, binary->build_id, binary->path, fd,
                             debug_file_open(binary->process_id, binary->build_id));
    return true;
}

static enum err_code start_symbols(struct service *service, struct err *err)
{
    const struct settings *settings = &service->settings;
    const struct symbol_uploader_options options = {.access = &settings->access,
                                                    .policy = settings->symbols,
                                                    .may_send_files =
                                                        settings->may_send_debug_files,
                                                    .memory_bytes = settings->symbols_memory_bytes,
                                                    .work_folder = settings->spool_dir};
    return symbol_uploader_start(&options, &service->symbols, err);
}

static bool must_end(void *context)
{
    (void)context;
    return is_ending;
}

static enum err_code open_service(struct service *service,
                                  const struct label_settings *label_settings, struct err *err)
{
    const struct settings *settings = &service->settings;
    const bool has_symbols = !settings->is_offline && settings->symbols != SYMBOL_POLICY_OFF;
    const struct agent_options of_agent = {.form = WINDOW_FOR_OTLP,
                                           .frequency_hz = settings->frequency_hz,
                                           .off_cpu_share = settings->off_cpu_share,
                                           .off_cpu_min_ns = settings->min_wait_ns,
                                           .has_no_tables = settings->has_no_tables,
                                           .has_bounded_loops = settings->has_bounded_loops,
                                           .has_tallies = settings->has_tallies,
                                           .is_forced = settings->is_forced,
                                           .memory_limit_bytes = settings->memory_limit_bytes,
                                           .label_settings = label_settings,
                                           .on_binary = has_symbols ? give_binary : NULL,
                                           .on_refusal = say_refusal,
                                           .is_ending = must_end,
                                           .on_left_out = say_left_out,
                                           .context = service};
    enum err_code code =
        spool_open(settings->spool_dir, settings->spool_max_bytes, &service->spool, err);
    if (!code && !settings->is_offline)
        code = profile_uploader_start(&settings->access, service->spool, &service->uploader, err);
    if (!code && has_symbols)
        code = start_symbols(service, err);
    if (!code && settings->metrics)
        code = http_monitor_start(settings->metrics, &service->monitor, err);
    if (!code)
        code = agent_open(&of_agent, &service->agent, err);
    if (!code)
        code = agent_start(service->agent, err);
    if (!code && !capabilities_keep(CAPABILITIES_FOR_SAMPLING))
        log_event(LOG_WARN, "rights that are not needed any more could not be given up", "pid=%d",
                  (int)getpid());
    return code;
}

static void report_loop(const struct service *service)
{
    struct agent_counts counts;
    char quoted[256];
    agent_count(service->agent, &counts);
    if (counts.loop_error)
        log_event(LOG_WARN, "this kernel refuses the program with bpf_loop; bounded loops are used",
                  "why=%s", log_quote(strerror(counts.loop_error), quoted, sizeof(quoted)));
}

static void report_memory(const struct service *service)
{
    struct agent_counts counts;
    agent_count(service->agent, &counts);
    if (counts.is_short_of_memory)
        log_event(
            LOG_WARN,
            "the memory limit is below what the agent has at its start: raise it, else stacks "
            "are walked by frame pointers and batches are small",
            "limit=%" PRIu64 " memory=%" PRIu64, service->settings.memory_limit_bytes,
            counts.memory_bytes + counts.shard_bytes);
}

static enum err_code serve(struct service *service, const struct relabel_rules *rules,
                           struct err *err)
{
    const struct settings *settings = &service->settings;
    struct pods *pods = NULL;
    enum err_code code = ERR_NONE;
    if (settings->pods.server)
        code = pods_start(&settings->pods, &pods, err);
    const struct label_settings label_settings = {.external = settings->labels,
                                                  .external_count = settings->label_count,
                                                  .environment = settings->environment,
                                                  .environment_count = settings->environment_count,
                                                  .rules = rules,
                                                  .pods = pods,
                                                  .host_root = settings->host_root};
    if (!code)
        code = open_service(service, &label_settings, err);
    if (!code) {
        log_event(LOG_INFO, "sampling", "frequency_hz=%u interval_s=%u",
                  service->settings.frequency_hz, service->settings.interval_s);
        report_loop(service);
        report_memory(service);
        run(service);
    }
    http_monitor_stop(service->monitor);
    profile_uploader_stop(service->uploader, code ? 0 : LAST_PATIENCE_MS);
    agent_close(service->agent);
    symbol_uploader_stop(service->symbols);
    pods_stop(pods);
    if (code)
        spool_abandon(service->spool);
    else
        spool_close(service->spool);
    return code;
}

static enum err_code read_rules(const struct settings *settings, struct arena *arena,
                                struct relabel_rules **ret_rules, struct err *err)
{
    buf_auto text;
    buf_init(&text, RELABEL_TEXT_MAX_BYTES);
    *ret_rules = NULL;
    if (!settings->relabel_file)
        return ERR_NONE;
    enum err_code code = procfs_file_read(settings->relabel_file, &text, err);
    if (code)
        return code;
    code = relabel_read(buf_span(&text), arena, ret_rules, err);
    return code ? err_add(err, "%s", settings->relabel_file) : ERR_NONE;
}

static void catch_signals(void)
{
    const struct sigaction action = {.sa_handler = note_signal};
    struct sigaction before;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int show(const struct settings *settings)
{
    struct err err;
    if (!show_unwind(settings->file, settings->is_json, stdout, &err))
        return EXIT_SUCCESS;
    fprintf(stderr, "perfolio-agent: %s\n", err.message);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    arena_auto arena = arena_create();
    struct service service = {0};
    struct err err = {0};
    struct relabel_rules *rules = NULL;
    enum err_code code = settings_read(argc, argv, arena, &service.settings, &err);
    if (!code && service.settings.action == SETTINGS_RUN)
        code = read_rules(&service.settings, arena, &rules, &err);
    if (code) {
        fprintf(stderr, "perfolio-agent: %s\n", err.message);
        return 2;
    }
    if (service.settings.action == SETTINGS_DOCTOR)
        return doctor_run() ? EXIT_SUCCESS : EXIT_FAILURE;
    if (service.settings.action == SETTINGS_SHOW_UNWIND)
        return show(&service.settings);
    catch_signals();
    code = serve(&service, rules, &err);
    if (code)
        fprintf(stderr, "perfolio-agent: %s\n", err.message);
    return code ? EXIT_FAILURE : EXIT_SUCCESS;
}
