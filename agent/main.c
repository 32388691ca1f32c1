/* perfolio-agent: samples all the time and sends a batch every few seconds. */
#include "agent/agent.h"
#include "agent/completion.h"
#include "agent/labels/label_source.h"
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
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/profile/profile.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    POLL_MS = 200,
    /* Each poll costs a tenth of a millisecond, because CPU caches are cold by then. */
    SETTLED_POLL_MS = 1000,
    BATCH_MAX_BYTES = 256 << 20, /* before compression */
    LAST_SEND_MS = 3000,         /* how long a stop waits for batches to be sent */
    REPORT_S = 60,               /* between two log lines of one kind */
    PUBLISH_S = 1,               /* between two updates of /metrics */
    METRICS_MAX_BYTES = 64 << 10,
    SITES_LOGGED = 5,
    SITES_TEXT_BYTES = 2048,
    HALVINGS_MAX = 3, /* how often a window that is too large for one batch is halved */
};

/* Set by the signal handler. */
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
    uint64_t lost_batches;             /* batches that could not be encoded or stored */
    int64_t refusal_ns;                /* when a refused table was last logged; 0: never */
    int64_t left_out_ns;               /* when left out names were last logged; 0: never */
    int64_t unsampled_ns;              /* when an unsampled CPU was last logged; 0: never */
};

/* ---- batches ---- */

static enum err_code keep_batch(struct service *service, const struct window_result *window,
                                const struct profile *profile, struct err *err)
{
    buf_auto raw, packed;
    buf_init(&raw, BATCH_MAX_BYTES);
    buf_init(&packed, SPOOL_BATCH_MAX_BYTES);
    enum err_code code = otlp_encode(profile, window->resources, window->resource_count, &raw, err);
    if (code)
        return code;
    code = compress_zstd(buf_span(&raw), COMPRESS_ZSTD_DEFAULT, &packed, err);
    if (code)
        return code;
    return spool_put(service->spool, buf_span(&packed), err);
}

static void lose_batch(struct service *service, const struct err *err)
{
    char quoted[2 * ERR_MESSAGE_BYTES];
    service->lost_batches++;
    log_event(LOG_ERROR, "a batch was lost", "why=%s",
              log_quote(err->message, quoted, sizeof(quoted)));
}

/* Stores a window as one batch or, if it is too large, as two to eight. The tables of names always
 * fit a batch, because of the owners' quotas. The stacks may not fit; each half contains only the
 * stacks of its own samples. */
static void keep_batches(struct service *service, const struct window_result *window,
                         const struct profile *profile, uint32_t halvings)
{
    struct err err;
    const uint32_t half = profile->sample_count / 2;
    const enum err_code code = keep_batch(service, window, profile, &err);
    if (code == ERR_TOO_LARGE && halvings && half) {
        const struct profile first = profile_samples(profile, 0, half),
                             second = profile_samples(profile, half, profile->sample_count - half);
        keep_batches(service, window, &first, halvings - 1);
        keep_batches(service, window, &second, halvings - 1);
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
        keep_batches(service, &window, window.profile, HALVINGS_MAX);
    window_result_fini(&window);
    if (service->uploader)
        profile_uploader_wake(service->uploader);
}

/* Logs the reasons for incomplete stacks, and the binaries in which they ended. */
static void report_failures(const struct agent *agent, const struct agent_counts *counts)
{
    buf_auto reasons, sites;
    char quoted[4096], quoted_sites[4 * SITES_TEXT_BYTES];
    buf_init(&reasons, 2048);
    buf_init(&sites, SITES_TEXT_BYTES);
    const uint64_t count = agent_append_stops(counts, &reasons);
    agent_append_failure_sites(agent, SITES_LOGGED, &sites);
    buf_append_byte(&reasons, 0);
    buf_append_byte(&sites, 0);
    if (count && !buf_failed(&reasons) && !buf_failed(&sites))
        log_event(LOG_INFO, "stacks that end before their root",
                  "count=%" PRIu64 " reasons=%s places=%s", count,
                  log_quote((const char *)reasons.data, quoted, sizeof(quoted)),
                  log_quote((const char *)sites.data, quoted_sites, sizeof(quoted_sites)));
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
        log_event(LOG_INFO, "refused for lack of space",
                  "processes=%" PRIu64 " mappings=%" PRIu64 " names_of_code=%" PRIu64
                  " waits=%" PRIu64 " unwind_tables=%" PRIu64,
                  counts->refused_processes, counts->refused_mappings, counts->refused_names,
                  counts->refused_off_cpu, counts->refused_tables);
}

struct counts {
    struct agent_counts agent;
    struct spool_counts spool;
    struct profile_uploader_counts uploader;
    struct symbol_uploader_counts symbols;
};

static void count_all(const struct service *service, struct counts *ret_counts)
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

static void report_counts(const struct service *service)
{
    struct counts counts;
    count_all(service, &counts);
    log_event(
        LOG_INFO, "so far",
        "samples=%" PRIu64 " lost_samples=%" PRIu64 " lost_events=%" PRIu64
        " restarted_cpus=%" PRIu64
        " unsampled_cpus=%u processes=%u mappings=%u binaries=%u unread_binaries=%u sent=%" PRIu64
        " refused_batches=%" PRIu64 " kept=%" PRIu64 " waiting=%u dropped=%" PRIu64
        " lost_batches=%" PRIu64 " memory=%" PRIu64 " symbols_sent=%" PRIu64,
        counts.agent.samples, counts.agent.lost_samples, counts.agent.lost_events,
        counts.agent.restarted_cpus, counts.agent.unsampled_cpus, counts.agent.processes,
        counts.agent.mappings, counts.agent.binaries, counts.agent.unread_binaries,
        counts.uploader.sent_batches, counts.uploader.refused_batches, counts.spool.put_batches,
        counts.spool.batches, counts.spool.dropped_batches, service->lost_batches,
        counts.agent.memory_bytes, counts.symbols.sent_tables);
    report_refusals(&counts.agent);
    report_failures(service->agent, &counts.agent);
    report_interpreters(&counts.agent);
}

static void publish_metrics(const struct service *service)
{
    struct counts counts;
    buf_auto text;
    buf_init(&text, METRICS_MAX_BYTES);
    count_all(service, &counts);
    metrics_append(&(struct metrics){.agent = &counts.agent,
                                     .spool = &counts.spool,
                                     .uploader = &counts.uploader,
                                     .symbols = &counts.symbols,
                                     .lost_batches = service->lost_batches,
                                     .is_offline = service->settings.is_offline},
                   &text);
    http_monitor_publish(service->monitor, buf_span(&text));
}

/* The interval varies by a tenth, so that agents that started at the same time do not send at the
 * same time. */
static int64_t next_window_ns(const struct service *service)
{
    const int64_t interval_ns = (int64_t)service->settings.interval_s * CLOCK_NS_PER_S;
    uint32_t random;
    digest_random(&random, sizeof(random));
    return clock_monotonic_ns() + interval_ns - interval_ns / 10 +
           (int64_t)((uint64_t)interval_ns / 5 * (random % 1000) / 1000);
}

static void run_until_ending(struct service *service)
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
            report_counts(service);
            report_ns = now_ns;
        }
        if (service->symbols && now_ns >= memory_ns) {
            struct agent_counts counts;
            agent_count(service->agent, &counts);
            symbol_uploader_pause(service->symbols, counts.is_short_of_memory);
            memory_ns = now_ns + CLOCK_NS_PER_S;
        }
        if (service->monitor && now_ns >= publish_ns) {
            publish_metrics(service);
            publish_ns = now_ns + PUBLISH_S * CLOCK_NS_PER_S;
        }
    }
    agent_stop(service->agent);
    send_window(service);
    report_counts(service);
}

/* ---- life ---- */

/* Whether an event may be logged: one a minute. All events are counted. */
static bool may_log(int64_t *logged_ns)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (*logged_ns && now_ns - *logged_ns < REPORT_S * CLOCK_NS_PER_S)
        return false;
    *logged_ns = now_ns;
    return true;
}

static void log_refusal(void *context, const char *path)
{
    struct service *service = context;
    char quoted[4096];
    if (!may_log(&service->refusal_ns))
        return;
    log_event(LOG_WARN,
              "the unwind table of a file is incomplete for lack of space or time: some stacks end "
              "in the "
              "file",
              "path=%s", log_quote(path, quoted, sizeof(quoted)));
}

static void log_left_out(void *context, uint32_t process_id, const char *name)
{
    struct service *service = context;
    char quoted[256];
    if (may_log(&service->left_out_ns))
        log_event(LOG_WARN,
                  "the names of a user's processes, or of a process of root, exceed the quota of a "
                  "batch: further ones are " WINDOW_NAME_LEFT_OUT,
                  "pid=%" PRIu32 " name=%s", process_id, log_quote(name, quoted, sizeof(quoted)));
}

static void log_cpus(void *context, uint32_t count, const char *why)
{
    struct service *service = context;
    char quoted[2 * ERR_MESSAGE_BYTES];
    if (count)
        log_event(LOG_INFO, "processors that came online or returned are sampled again",
                  "count=%" PRIu32, count);
    if (why && may_log(&service->unsampled_ns))
        log_event(LOG_WARN, "a processor that came online or returned cannot be sampled", "why=%s",
                  log_quote(why, quoted, sizeof(quoted)));
}

/* Offers a sampled binary to the symbol uploader. Its file is opened now, while a process maps it.
 */
static bool give_binary(void *context, const struct agent *agent, const struct agent_binary *binary)
{
    const struct service *service = context;
    if (!binary->build_id[0])
        return true; /* the server identifies files by their build ids */
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
                                           .off_cpu_fraction = settings->off_cpu_fraction,
                                           .off_cpu_min_ns = settings->min_off_cpu_ns,
                                           .has_no_tables = settings->has_no_tables,
                                           .has_bounded_loops = settings->has_bounded_loops,
                                           .has_tallies = settings->has_tallies,
                                           .is_forced = settings->is_forced,
                                           .memory_limit_bytes = settings->memory_limit_bytes,
                                           .label_settings = label_settings,
                                           .on_binary = has_symbols ? give_binary : NULL,
                                           .on_refusal = log_refusal,
                                           .is_ending = must_end,
                                           .on_left_out = log_left_out,
                                           .on_cpus = log_cpus,
                                           .will_drop_rights = true,
                                           .context = service};
    if (spool_open(settings->spool_dir, settings->spool_max_bytes, &service->spool, err))
        return err->code;
    if (!settings->is_offline &&
        profile_uploader_start(&settings->access, service->spool, &service->uploader, err))
        return err->code;
    if (has_symbols && start_symbols(service, err))
        return err->code;
    if (settings->metrics && http_monitor_start(settings->metrics, &service->monitor, err))
        return err->code;
    if (agent_open(&of_agent, &service->agent, err) || agent_start(service->agent, err))
        return err->code;
    if (!capabilities_keep(CAPABILITIES_FOR_SAMPLING))
        log_event(LOG_WARN, "capabilities that are no longer needed could not be dropped", "pid=%d",
                  (int)getpid());
    return ERR_NONE;
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
            "the memory limit is below the memory of the agent at its start: raise it; otherwise "
            "stacks are unwound by frame pointers and batches are small",
            "limit=%" PRIu64 " memory=%" PRIu64, service->settings.memory_limit_bytes,
            counts.memory_bytes + counts.shard_bytes);
}

static enum err_code run_service(struct service *service, const struct relabel_rules *rules,
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
        run_until_ending(service);
    }
    http_monitor_stop(service->monitor);
    profile_uploader_stop(service->uploader, code ? 0 : LAST_SEND_MS);
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
    if (!show_unwind(settings->argument, settings->is_json, stdout, &err))
        return EXIT_SUCCESS;
    fprintf(stderr, "perfolio-agent: %s\n", err.message);
    return EXIT_FAILURE;
}

static int print_completion(const struct settings *settings)
{
    if (completion_print(settings->argument))
        return EXIT_SUCCESS;
    fprintf(stderr, "perfolio-agent: there is no completion for %s: use bash, zsh or fish\n",
            settings->argument);
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
    if (service.settings.action == SETTINGS_COMPLETION)
        return print_completion(&service.settings);
    catch_signals();
    code = run_service(&service, rules, &err);
    if (code)
        fprintf(stderr, "perfolio-agent: %s\n", err.message);
    return code ? EXIT_FAILURE : EXIT_SUCCESS;
}
