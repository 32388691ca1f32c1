#include "cli/arguments.h"
#include "cli/cli.h"
#include "lib/base/err.h"

#include "agent/agent.h"
#include "cli/client.h"
#include "cli/commands/open.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/record/child_process.h"
#include "cli/record/delay_notice.h"
#include "cli/record/empty_recording.h"
#include "cli/record/live_top.h"
#include "cli/record/local_names.h"
#include "cli/record/mapped_files.h"
#include "cli/record/record_output.h"
#include "cli/record/record_summary.h"
#include "cli/record/unsymbolized_code.h"
#include "cli/save.h"
#include "cli/share_print.h"
#include "cli/upload.h"
#include "cli/value.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/share_text.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    DEFAULT_HZ = 99, /* not 100: sampling in step with a periodic task would always hit the same
                        point of it */
    DEFAULT_SECONDS = 10,
    MAX_SECONDS = 24 * 3600,
    POLL_MS = 100,
    SHOW_S = 1,
    PROFILE_MAX_BYTES = 1 << 30,
    TARGETS_MAX = 64,
};
#define DEFAULT_FILE "profile.pb.gz"
#define ONE_REQUEST_NS (CLOCK_NS_PER_S / 2)

struct record {
    struct cli *cli;
    uint32_t targets[TARGETS_MAX];
    uint32_t target_count;
    char target_name[16]; /* of the first target; empty: unknown */
    char **command;       /* NULL: none */
    double seconds;       /* 0: until the command ends, or the default */
    uint32_t frequency_hz;
    enum event_kind event;
    double off_cpu_fraction; /* 0: off-CPU time is not recorded */
    int64_t min_off_cpu_ns;
    const char *output; /* NULL: no --output */
    bool is_all;
    bool is_shared;
    bool is_opened;
    bool is_json;
    bool is_forced;
    bool has_no_tables;
    bool has_bounded_loops;
    bool is_unnamed;
    bool has_progress; /* --progress */
    bool is_wall;
    bool is_live;
    struct live_top *live; /* NULL: no --top */
    int64_t shown_ns;
    struct upload_settings settings;
    struct child_process launch;
    struct mapped_files *files;     /* NULL: the profile is not symbolized */
    struct delay_notice *preparing; /* NULL: preparation has ended */
};

/* ---- arguments ---- */

static enum err_code take_target(void *values, const struct option_row *row, const char *text,
                                 struct err *err)
{
    struct record *record = values;
    uint64_t process_id;
    if (!span_parse_u64(span_text(text), &process_id) || process_id == 0 || process_id > INT32_MAX)
        return options_refuse(row, text, err);
    if (record->target_count == TARGETS_MAX)
        return err_set(err, ERR_INVALID,
                       "-p can be given at most %d times: use -a to record all processes",
                       TARGETS_MAX);
    record->targets[record->target_count++] = (uint32_t)process_id;
    return ERR_NONE;
}

/* The row's max is the longest time. */
static enum err_code take_seconds(void *values, const struct option_row *row, const char *text,
                                  struct err *err)
{
    struct record *record = values;
    char *end;
    record->seconds = strtod(text, &end);
    return end == text || *end || !(record->seconds >= 0.01) || record->seconds > MAX_SECONDS
               ? options_refuse(row, text, err)
               : ERR_NONE;
}

static enum err_code take_event(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    struct record *record = values;
    return event_kind_find(text, &record->event) ? ERR_NONE : options_refuse(row, text, err);
}

/* text is NULL for all intervals. */
static enum err_code take_off_cpu(void *values, const struct option_row *row, const char *text,
                                  struct err *err)
{
    struct record *record = values;
    char *end;
    record->off_cpu_fraction = text ? strtod(text, &end) : 1;
    return text && (end == text || *end ||
                    !(record->off_cpu_fraction >= AGENT_OFF_CPU_FRACTION_MIN) ||
                    record->off_cpu_fraction > 1)
               ? options_refuse(row, text, err)
               : ERR_NONE;
}

static enum err_code take_quiet(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    (void)row;
    (void)text;
    (void)err;
    ((struct record *)values)->cli->terminal.is_quiet = true;
    return ERR_NONE;
}

static const char *const visibilities[] = {"public", "unlisted", "team", NULL};

/* Kinds and places of values in struct record. */
#define TEXT(member) OPTION_TEXT(struct record, member)
#define FLAG(member) OPTION_FLAG(struct record, member)
#define MIN_OFF_CPU                                                                                \
    OPTION_NUMBER(struct record, min_off_cpu_ns, 0, MAX_SECONDS *UINT64_C(1000000), 1000),         \
        .error = "--min-off-cpu takes microseconds, not {value}"

/* Groups: what to record, the share, how to record. */
static const struct option_row rows[] = {
    {"pid", 'p', "PID", "Record this process and its children; may be repeated",
     .take = take_target, .error = "-p takes a process id, not {value}"},
    {"all", 'a', NULL, "Record all processes of this host", FLAG(is_all)},
    {"duration", 'd', "SECONDS", "Stop after this time (10, or when COMMAND ends)",
     .take = take_seconds, .max = MAX_SECONDS,
     .error = "-d takes seconds from 0.01 to {max}, not {value}"},
    {"frequency", 'F', "HZ", "Samples per second on each busy processor (99)",
     OPTION_NUMBER(struct record, frequency_hz, 1, AGENT_FREQUENCY_MAX_HZ, 1),
     .error = "-F takes a number from {min} to {max}, not {value}"},
    {"event", 0, "EVENT",
     "Event to sample by: cycles, instructions, cache-misses, page-faults or context-switches "
     "(CPU time, by a timer, which does not fire while interrupts are off)",
     .take = take_event,
     .error = "--event is cpu, cpu-clock, cycles, instructions, cache-misses, page-faults or "
              "context-switches, not {value}"},
    {"off-cpu", 0, "FRACTION",
     "Also record where and how long threads wait: all off-CPU intervals, or this fraction of "
     "them (1)",
     .take = take_off_cpu, .is_value_optional = true,
     .error = "--off-cpu takes a number from 0.0001 to 1, not {value}"},
    {"wall", 0, NULL, "Record CPU time and off-CPU time as one type, wall", FLAG(is_wall)},
    {"min-off-cpu", 0, "MICROSECONDS", "Ignore shorter off-CPU intervals (0)", MIN_OFF_CPU},
    {"min-wait", 0, "MICROSECONDS", "Former name of --min-off-cpu", MIN_OFF_CPU, .is_hidden = true},
    {"top", 0, NULL,
     "Show the most expensive functions once per second until q is typed; the profile is written "
     "only with -o or --share",
     FLAG(is_live)},
    {"output", 'o', "FILE",
     "Write pprof to FILE (" DEFAULT_FILE " unless shared), - is standard output", TEXT(output)},
    {"no-names", 0, NULL, "Write addresses without names; the server adds the names",
     FLAG(is_unnamed)},
    {"share", 0, NULL, "Upload the profile and print its link", FLAG(is_shared), .group = 1},
    {"title", 0, "TEXT", "Title of the share (the command, or the process)", TEXT(settings.title),
     .group = 1},
    {"description", 0, "TEXT", "Description, as Markdown", TEXT(settings.description), .group = 1},
    {"expires", 0, "TIME", "When the share expires: 12h, 30d, 8w or never", TEXT(settings.expires),
     .group = 1},
    {"visibility", 0, "VISIBILITY", "public, unlisted or team",
     OPTION_WORD(struct record, settings.visibility, visibilities), .group = 1,
     .error = "--visibility is {words}, not {value}"},
    {"json", 0, NULL, "Print the response of the server as one line of JSON", FLAG(is_json),
     .group = 1},
    {"open", 0, NULL, "Open the link in a browser", FLAG(is_opened), .group = 1},
    {"quiet", 'q', NULL, "Print only warnings and errors", .take = take_quiet, .group = 2},
    {"progress", 0, NULL, "Report slow steps even if standard error is not a terminal",
     FLAG(has_progress), .group = 2},
    {"frame-pointers", 0, NULL, "Unwind by frame pointers only, without unwind tables",
     FLAG(has_no_tables), .group = 2},
    {"bounded-loops", 0, NULL, "Use the kernel program for Linux before 5.17 on any kernel",
     FLAG(has_bounded_loops), .group = 2},
    {"force", 0, NULL, "Record even on kernels that are known to hang (5.19 to 6.0)",
     FLAG(is_forced), .group = 2},
    {0},
};

/* Refuses before the recording what the server would refuse after it. */
static enum err_code check_texts(const struct upload_settings *settings, struct err *err)
{
    int64_t ignored;
    enum err_code code = ERR_NONE;
    if (settings->expires)
        code = share_text_parse_expires(span_text(settings->expires), &ignored, err);
    if (!code && settings->title)
        code = share_text_check("title", span_text(settings->title), SHARE_TITLE_CHARACTERS, true,
                                err);
    if (!code && settings->description)
        code = share_text_check("description", span_text(settings->description),
                                SHARE_DESCRIPTION_CHARACTERS, false, err);
    if (!code)
        return ERR_NONE;
    const struct err why = *err; /* its message begins with the name of the option */
    return err_set(err, code, "--%s", why.message);
}

static enum err_code check_target_count(const struct record *record, struct err *err)
{
    const int ways = record->is_all + (record->target_count > 0) + (record->command != NULL);
    if (ways == 0)
        return err_set(err, ERR_INVALID, "give what to record: -p PID, -a, or -- COMMAND");
    if (ways > 1)
        return err_set(err, ERR_INVALID, "-p, -a and COMMAND cannot be combined");
    return ERR_NONE;
}

static bool has_share_options(const struct record *record)
{
    const struct upload_settings *settings = &record->settings;
    return settings->title || settings->description || settings->expires || settings->visibility ||
           record->is_json || record->is_opened;
}

static enum err_code check_off_cpu(struct record *record, struct err *err)
{
    if (record->is_wall && !event_kind_is_time(record->event))
        return err_set(err, ERR_INVALID, "--wall cannot be combined with --event=%s",
                       event_facts(record->event)->name);
    if (record->is_wall && record->off_cpu_fraction == 0)
        record->off_cpu_fraction = 1;
    if (record->min_off_cpu_ns && record->off_cpu_fraction == 0)
        return err_set(err, ERR_INVALID, "--min-off-cpu needs --off-cpu or --wall");
    return ERR_NONE;
}

static enum err_code check_output(const struct record *record, struct err *err)
{
    if (record->output && !record->output[0])
        return err_set(err, ERR_INVALID, "-o takes the name of a file, or - for standard output");
    if (record->is_live && record->output && strcmp(record->output, "-") == 0)
        return err_set(err, ERR_INVALID, "--top and -o - both write to standard output");
    return ERR_NONE;
}

static void set_defaults(struct record *record)
{
    /* With a live table the user ends the recording. */
    const bool is_watched = record->is_live && record->cli->terminal.is_output_terminal;
    if (record->seconds == 0 && !record->command && !is_watched)
        record->seconds = DEFAULT_SECONDS;
    if (!record->output && !record->is_shared && !record->is_live)
        record->output = DEFAULT_FILE;
}

static enum err_code check_arguments(void *values, struct err *err)
{
    struct record *record = values;
    enum err_code code = check_texts(&record->settings, err);
    if (!code)
        code = check_target_count(record, err);
    if (!code && !record->is_shared && has_share_options(record))
        code = err_set(err, ERR_INVALID,
                       "--title, --description, --expires, --visibility, --json and --open "
                       "apply to shares: add --share");
    if (!code)
        code = check_off_cpu(record, err);
    if (!code)
        code = check_output(record, err);
    if (!code)
        set_defaults(record);
    return code;
}

static void take_command(void *values, char **words)
{
    ((struct record *)values)->command = words;
}

static const struct option_table options = {
    .rows = rows,
    .take_words = take_command,
    .check = check_arguments,
    .arguments = "[-- COMMAND [ARGUMENT...]]",
    .text = "Sample where programs spend processor time, and write or share the profile.\v"
            "The programs need no change. Run it as root, or with CAP_BPF, CAP_PERFMON, "
            "CAP_SYS_PTRACE and CAP_SYSLOG; without these it samples only your own programs. "
            "Function names come from files on this host; the server looks up the others. "
            "Ctrl-C and a closed terminal stop the recording; the profile is still written.",
};

/* ---- recording ---- */

/* Set by signals: Ctrl-C ends the recording, a second one ends the process. */
static volatile sig_atomic_t is_interrupted;
static int64_t interrupted_ns; /* used by the handler only */

/*
 * Two signals within ONE_REQUEST_NS are one request: timeout(1) signals this process and then its
 * process group, and the end of a session sends SIGTERM and SIGHUP. SIGHUP alone never ends the
 * process; the terminal is gone, but the profile is still written.
 */
static void note_interrupt(int number)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (is_interrupted && number != SIGHUP && now_ns - interrupted_ns > ONE_REQUEST_NS)
        interrupt_end(number);
    if (!is_interrupted)
        interrupted_ns = now_ns;
    is_interrupted = 1;
}

static void catch_interrupts(struct sigaction saved[2])
{
    struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = SA_RESTART}, before;
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGINT, &action, &saved[0]);
    sigaction(SIGTERM, &action, &saved[1]);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* not under nohup */
        sigaction(SIGHUP, &action, NULL);
}

/* If a signal ended the recording, keep the handler: the second signal of the same request may
 * still arrive. */
static void release_interrupts(const struct sigaction saved[2])
{
    if (is_interrupted)
        return;
    sigaction(SIGINT, &saved[0], NULL);
    sigaction(SIGTERM, &saved[1], NULL);
}

/* Reads the name at the start, because the process may end before the recording. */
static void note_name(struct record *record)
{
    char path[48];
    snprintf(path, sizeof(path), "/proc/%u/comm", record->targets[0]);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(record->target_name, sizeof(record->target_name), file))
        record->target_name[strcspn(record->target_name, "\n")] = 0;
    fclose(file);
}

/* Refuses thread ids, which /proc/TID accepts but no sample has, and zombie processes. */
static enum err_code check_target(uint32_t process_id, struct err *err)
{
    char path[48], line[128], state = 0;
    uint32_t owner = process_id, thread_count = 1;
    if (kill((pid_t)process_id, 0) && errno == ESRCH)
        return err_set(err, ERR_NOT_FOUND, "process %u does not exist", process_id);
    snprintf(path, sizeof(path), "/proc/%u/status", process_id);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "State: %c", &state) == 1 || sscanf(line, "Tgid: %" SCNu32, &owner) == 1)
            continue;
        if (sscanf(line, "Threads: %" SCNu32, &thread_count) == 1)
            break;
    }
    if (file)
        fclose(file);
    if (state == 'Z' && thread_count <= 1)
        return err_set(err, ERR_NOT_FOUND,
                       "process %u has ended already, and its parent has not read its exit status",
                       process_id);
    if (owner == process_id)
        return ERR_NONE;
    return err_set(err, ERR_NOT_FOUND,
                   "%u is a thread of process %u: record that, and filter its profile by the label "
                   "thread",
                   process_id, owner);
}

static enum err_code add_targets(struct record *record, struct agent *agent, struct err *err)
{
    enum err_code code = ERR_NONE;
    if (record->command)
        code = agent_add_target(agent, (uint32_t)record->launch.process_id, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < record->target_count; i++) {
        code = check_target(record->targets[i], err);
        if (code)
            return code;
        code = agent_add_target(agent, record->targets[i], err);
        if (code)
            return code;
    }
    if (record->target_count)
        note_name(record);
    return ERR_NONE;
}

static bool has_target_left(const struct record *record)
{
    for (uint32_t i = 0; i < record->target_count; i++) {
        if (kill((pid_t)record->targets[i], 0) == 0 || errno != ESRCH)
            return true;
    }
    return record->target_count == 0;
}

/* Whether a profile of all samples is written or shared at the end. */
static bool has_final_profile(const struct record *record)
{
    return record->output || record->is_shared;
}

static void update_live_top(struct record *record, struct agent *agent)
{
    struct window_result slice;
    struct err ignored;
    if (!(has_final_profile(record) ? agent_take_live(agent, &slice, &ignored)
                                    : agent_take(agent, &slice, &ignored)))
        live_top_add(record->live, &slice);
}

static void update_live_top_in_time(struct record *record, struct agent *agent)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (!record->live || now_ns - record->shown_ns < SHOW_S * CLOCK_NS_PER_S)
        return;
    record->shown_ns = now_ns;
    update_live_top(record, agent);
}

static void wait_for_end(struct record *record, struct agent *agent)
{
    const int64_t end_ns =
        record->seconds > 0
            ? clock_monotonic_ns() + (int64_t)(record->seconds * (double)CLOCK_NS_PER_S)
            : INT64_MAX;
    while (!is_interrupted && !agent_is_full(agent) && has_target_left(record) &&
           !live_top_is_ended(record->live)) {
        update_live_top_in_time(record, agent);
        const int64_t left_ns = end_ns - clock_monotonic_ns();
        if (left_ns <= 0 || (record->command && child_process_has_ended(&record->launch)))
            return;
        const int64_t left_ms = left_ns / CLOCK_NS_PER_MS + 1;
        agent_poll(agent, left_ms < POLL_MS ? (int)left_ms : POLL_MS);
    }
}

static void print_summary(struct record *record, const struct agent *agent)
{
    struct agent_counts counts;
    agent_count(agent, &counts);
    record_summary_print(&record->cli->terminal,
                         &(struct record_summary){.counts = &counts,
                                                  .frequency_hz = record->frequency_hz,
                                                  .has_off_cpu = record->off_cpu_fraction > 0,
                                                  .is_full = agent_is_full(agent)});
}

static void end_preparing(struct record *record, bool is_begun)
{
    if (delay_notice_end(record->preparing) && is_begun)
        terminal_note(&record->cli->terminal, "recording");
    record->preparing = NULL;
}

static enum err_code run_agent(struct record *record, struct agent *agent,
                               struct window_result *ret_result, struct err *err)
{
    struct sigaction saved[2];
    enum err_code code = add_targets(record, agent, err);
    /* Before agent_start, which raises the priority of this thread; the table's thread must not
     * inherit it. */
    if (!code && record->is_live) {
        end_preparing(record, false); /* from now on the table uses the screen */
        code = live_top_start(record->cli, record->files, &record->live, err);
    }
    if (!code)
        code = agent_start(agent, err);
    end_preparing(record, !code);
    if (!code && record->command)
        code = child_process_begin(&record->launch, record->command[0], err);
    if (code) {
        live_top_stop(record->live);
        return code;
    }
    record->shown_ns = clock_monotonic_ns();
    catch_interrupts(saved);
    wait_for_end(record, agent);
    agent_stop(agent);
    if (record->live)
        update_live_top(record, agent);
    live_top_stop(record->live);
    release_interrupts(saved);
    print_summary(record, agent);
    return agent_take(agent, ret_result, err);
}

/* Keeps the file open: when the profile is symbolized, its path may lead to another file, and its
 * process may have ended. */
static bool keep_file(void *context, const struct agent *agent, const struct agent_binary *binary)
{
    const struct record *record = context;
    const int fd = agent_open_binary(agent, binary);
    if (fd >= 0)
        mapped_files_add(record->files, binary->build_id, binary->path, fd);
    return true;
}

/* Whether the kernel allows this recording to a user without privileges. */
static bool may_be_unprivileged(const struct record *record)
{
    return !record->is_all && record->off_cpu_fraction == 0 &&
           !event_kind_is_subsampled(record->event);
}

static enum err_code take_profile(struct record *record, struct window_result *ret_result,
                                  struct err *err)
{
    struct agent_options of_agent = {.form = WINDOW_FOR_PEOPLE,
                                     .frequency_hz = record->frequency_hz,
                                     .event = record->event,
                                     .off_cpu_fraction = record->off_cpu_fraction,
                                     .off_cpu_min_ns = record->min_off_cpu_ns,
                                     .is_wall = record->is_wall,
                                     .has_live_window =
                                         record->is_live && has_final_profile(record),
                                     .has_targets = !record->is_all,
                                     .has_no_tables = record->has_no_tables,
                                     .has_bounded_loops = record->has_bounded_loops,
                                     .may_be_unprivileged = may_be_unprivileged(record),
                                     .is_forced = record->is_forced,
                                     .context = record};
    agent_auto agent = NULL;
    enum err_code code = ERR_NONE;
    /* Before agent_open, so that the child inherits no descriptor of the agent. */
    if (record->command)
        code = child_process_prepare(record->command, &record->launch, err);
    if (!record->is_unnamed)
        record->files = mapped_files_create();
    of_agent.on_binary = record->files ? keep_file : NULL;
    record->preparing =
        delay_notice_begin(&record->cli->terminal, "preparing: reading the running processes");
    if (!code)
        code = agent_open(&of_agent, &agent, err);
    if (code == ERR_FORBIDDEN && !of_agent.may_be_unprivileged) {
        const struct err why = *err;
        end_preparing(record, false);
        return err_set(
            err, code,
            "%s; without these rights only the processor time of your own programs can be "
            "recorded: -p PID or -- COMMAND",
            why.message);
    }
    if (!code)
        code = run_agent(record, agent, ret_result, err);
    end_preparing(record, false);
    if (code || ret_result->samples || !has_final_profile(record))
        return code;
    window_result_fini(ret_result);
    struct agent_counts counts;
    agent_count(agent, &counts);
    return empty_recording_explain(
        &(struct empty_recording){.command = record->command,
                                  .target_count = record->target_count,
                                  .frequency_hz = record->frequency_hz,
                                  .event = record->event,
                                  .is_unprivileged = counts.is_unprivileged},
        err);
}

/* ---- the result ---- */

static enum err_code symbolize_profile(struct record *record, struct profile *profile,
                                       struct arena *arena, struct profile *ret_named,
                                       struct err *err)
{
    struct local_names_counts counts = {0};
    char text[VALUE_TEXT_BYTES];
    *ret_named = *profile;
    if (!record->files)
        return ERR_NONE;
    struct local_names *names = local_names_create(
        record->cli, record->files,
        record->has_progress && !record->cli->terminal.is_error_terminal ? LOCAL_NAMES_REPORTED
                                                                         : LOCAL_NAMES_ONCE);
    const enum err_code code =
        local_names_symbolize(names, profile, arena, ret_named, &counts, err);
    local_names_destroy(names);
    if (code)
        return code;
    if (counts.unknown_count)
        terminal_note(&record->cli->terminal, "%u of %s %s no name on this machine%s",
                      counts.unknown_count,
                      value_counted(counts.address_count, "address", "addresses", text),
                      counts.unknown_count == 1 ? "has" : "have",
                      record->is_shared ? "; the server looks for them" : "");
    return ERR_NONE;
}

/* Converts strings to UTF-8. Names may be any bytes, and readers of protobuf refuse a file with one
 * invalid string. */
static void make_texts_utf8(struct profile *profile, struct arena *arena)
{
    struct span *strings = arena_new(arena, struct span, profile->string_count);
    for (uint32_t i = 0; i < profile->string_count; i++)
        strings[i] = span_make_utf8(profile->strings[i], arena);
    profile->strings = strings;
}

static enum err_code encode_gzip(const struct profile *profile, struct buf *output, struct err *err)
{
    buf_auto raw;
    buf_init(&raw, PROFILE_MAX_BYTES);
    const enum err_code code = pprof_encode(profile, &raw, err);
    return code ? code : compress_gzip(buf_span(&raw), COMPRESS_GZIP_DEFAULT, output, err);
}

static const char *title_of(const struct record *record)
{
    buf_auto text;
    buf_init(&text, 4096);
    if (record->settings.title)
        return record->settings.title;
    if (record->is_all)
        return "all processes";
    if (record->target_count)
        terminal_append_clean(&text, span_text(record->target_name));
    for (char **word = record->command; word && *word; word++) {
        if (text.size)
            buf_append_byte(&text, ' ');
        terminal_append_clean(&text, span_text(*word));
    }
    if (text.size == 0)
        return NULL;
    /* The server accepts 200 characters; a shorter title is easier to read. */
    const size_t size = text.size < 120 ? text.size : 120;
    char *title = arena_strndup(record->cli->arena, text.data, size);
    return span_is_utf8(span_text(title)) ? title : NULL;
}

/* ret_is_sent: the share exists, even if a later step fails. */
static enum err_code share_profile(struct record *record, struct span bytes, bool *ret_is_sent,
                                   struct err *err)
{
    struct cli *cli = record->cli;
    client_auto client = NULL;
    input_auto input = INPUT_NONE;
    json_auto_t *response = NULL;
    struct upload_settings settings = record->settings;
    settings.title = title_of(record);
    settings.filename = DEFAULT_FILE;
    *ret_is_sent = false;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    code = input_from_bytes(bytes, DEFAULT_FILE, cli->arena, &input, err);
    if (code)
        return code;
    code = upload_share(client, &cli->terminal, &input, &settings, &response, err);
    if (code)
        return code;
    *ret_is_sent = true;
    code = share_print_result(cli, client, record->is_json ? SHARE_OUTPUT_JSON : SHARE_OUTPUT_URL,
                              response, &settings, err);
    share_print_details(cli, response, &settings);
    if (code)
        return code;
    if (record->is_opened)
        return open_url(client_text(response, "url", ""), err);
    return ERR_NONE;
}

/* Performs every step even if another one fails, and saves the profile elsewhere if neither file
 * nor share has it. */
static enum err_code deliver_profile(struct record *record, struct span bytes, struct err *err)
{
    struct cli *cli = record->cli;
    struct err of_share;
    const bool is_file = record->output && strcmp(record->output, "-") != 0;
    const enum err_code written =
        record->output ? save_bytes(bytes, record->output, true, err) : ERR_NONE;
    bool is_saved = is_file && !written;
    if (is_saved)
        terminal_note(&cli->terminal, "written to %s", record->output);
    if (written && written != ERR_CANCELLED)
        is_saved = record_output_keep(&cli->terminal, cli->arena, bytes);
    bool is_sent = false;
    if (!record->is_shared || !share_profile(record, bytes, &is_sent, &of_share))
        return written;
    if (!is_saved && !is_sent)
        record_output_keep(&cli->terminal, cli->arena, bytes);
    if (written)
        terminal_warn(&cli->terminal, "%s", of_share.message);
    else
        *err = of_share;
    return err->code;
}

static enum err_code finish_recording(struct record *record, struct window_result *result,
                                      struct err *err)
{
    arena_auto arena = arena_create();
    struct profile named;
    if (!has_final_profile(record))
        return ERR_NONE;
    buf_auto bytes;
    buf_init(&bytes, PROFILE_MAX_BYTES);
    unsymbolized_code_print(&record->cli->terminal, result->profile);
    enum err_code code = symbolize_profile(record, result->profile, arena, &named, err);
    if (code)
        return code;
    make_texts_utf8(&named, arena);
    code = encode_gzip(&named, &bytes, err);
    if (code)
        return code;
    return deliver_profile(record, buf_span(&bytes), err);
}

/* Checks before the recording that the output can be written and a server is set. */
static enum err_code check_ends(struct record *record, struct err *err)
{
    client_auto client = NULL;
    if (record->output) {
        const enum err_code code = record_output_try(record->output, record->cli->arena, err);
        if (code)
            return code;
    }
    return record->is_shared ? cli_connect(record->cli, NULL, &client, err) : ERR_NONE;
}

static enum err_code run_record(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct record record = {
        .cli = cli, .frequency_hz = DEFAULT_HZ, .launch = {.start_fd = -1, .failure_fd = -1}};
    struct window_result result = {0};
    cli_parse(&record_command, argc, argv, &record);
    enum err_code code = check_ends(&record, err);
    if (!code)
        code = take_profile(&record, &result, err);
    /* Ignore the command's status after Ctrl-C, which ended the command, too. */
    cli->command_status = is_interrupted ? 0 : child_process_exit_status(&record.launch);
    child_process_close(&record.launch);
    if (!code)
        code = finish_recording(&record, &result, err);
    window_result_fini(&result);
    mapped_files_destroy(record.files);
    return code ? code : cli_flush(err);
}

const struct command record_command = {
    .name = "record",
    .summary = "sample running programs and write or share the profile",
    .options = &options,
    .arguments = ARGUMENTS_FILES,
    .run = run_record,
};
