#include "agent/agent.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/record/child_process.h"
#include "cli/record/delay_notice.h"
#include "cli/record/empty_recording.h"
#include "cli/record/live_top.h"
#include "cli/record/mapped_files.h"
#include "cli/record/record_delivery.h"
#include "cli/record/record_options.h"
#include "cli/record/record_output.h"
#include "cli/record/record_summary.h"
#include "cli/record/stop_signal.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

enum { POLL_MS = 100, SHOW_S = 1 };

struct record {
    struct record_options options;
    char target_name[16];  /* name of the first target; empty: unknown */
    struct live_top *live; /* NULL: no --top */
    int64_t shown_ns;
    struct child_process child;
    struct mapped_files *files;     /* NULL: the profile is not symbolized */
    struct delay_notice *preparing; /* NULL: preparation has ended */
};

/* Reads the name at the start, because the process may end during the recording. */
static void note_name(struct record *record)
{
    char path[48];
    snprintf(path, sizeof(path), "/proc/%u/comm", record->options.targets[0]);
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
    if (record->options.command)
        code = agent_add_target(agent, (uint32_t)record->child.process_id, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < record->options.target_count; i++) {
        code = check_target(record->options.targets[i], err);
        if (code)
            return code;
        code = agent_add_target(agent, record->options.targets[i], err);
        if (code)
            return code;
    }
    if (record->options.target_count)
        note_name(record);
    return ERR_NONE;
}

static bool has_target_left(const struct record *record)
{
    for (uint32_t i = 0; i < record->options.target_count; i++) {
        if (kill((pid_t)record->options.targets[i], 0) == 0 || errno != ESRCH)
            return true;
    }
    return record->options.target_count == 0;
}

static void update_live_top(struct record *record, struct agent *agent)
{
    struct window_result slice;
    struct err ignored;
    if (!(record_options_have_profile(&record->options) ? agent_take_live(agent, &slice, &ignored)
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
        record->options.seconds > 0
            ? clock_monotonic_ns() + (int64_t)(record->options.seconds * (double)CLOCK_NS_PER_S)
            : INT64_MAX;
    while (!stop_signal_is_set() && !agent_is_full(agent) && has_target_left(record) &&
           !live_top_is_ended(record->live)) {
        update_live_top_in_time(record, agent);
        const int64_t left_ns = end_ns - clock_monotonic_ns();
        if (left_ns <= 0 || (record->options.command && child_process_has_ended(&record->child)))
            return;
        const int64_t left_ms = left_ns / CLOCK_NS_PER_MS + 1;
        agent_poll(agent, left_ms < POLL_MS ? (int)left_ms : POLL_MS);
    }
}

static void print_summary(struct record *record, const struct agent *agent)
{
    struct agent_counts counts;
    agent_count(agent, &counts);
    record_summary_print(
        &record->options.cli->terminal,
        &(struct record_summary){.counts = &counts,
                                 .frequency_hz = record->options.frequency_hz,
                                 .has_off_cpu = record->options.off_cpu_fraction > 0,
                                 .is_full = agent_is_full(agent)});
}

static void end_preparing(struct record *record, bool is_begun)
{
    if (delay_notice_end(record->preparing) && is_begun)
        terminal_note(&record->options.cli->terminal, "recording");
    record->preparing = NULL;
}

static enum err_code run_agent(struct record *record, struct agent *agent,
                               struct window_result *ret_result, struct err *err)
{
    struct stop_signal signals;
    enum err_code code = add_targets(record, agent, err);
    /* Before agent_start, which raises the priority of this thread; the table's thread must not
     * inherit it. */
    if (!code && record->options.is_live) {
        end_preparing(record, false); /* from now on the table uses the screen */
        code = live_top_start(record->options.cli, record->files, &record->live, err);
    }
    if (!code)
        code = agent_start(agent, err);
    end_preparing(record, !code);
    if (!code && record->options.command)
        code = child_process_begin(&record->child, record->options.command[0], err);
    if (code) {
        live_top_stop(record->live);
        return code;
    }
    record->shown_ns = clock_monotonic_ns();
    stop_signal_catch(&signals);
    wait_for_end(record, agent);
    agent_stop(agent);
    if (record->live)
        update_live_top(record, agent);
    live_top_stop(record->live);
    stop_signal_release(&signals);
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
    return !record->options.is_all && record->options.off_cpu_fraction == 0 &&
           !event_kind_is_subsampled(record->options.event);
}

static enum err_code take_profile(struct record *record, struct window_result *ret_result,
                                  struct err *err)
{
    struct agent_options of_agent = {
        .form = WINDOW_FOR_PEOPLE,
        .frequency_hz = record->options.frequency_hz,
        .event = record->options.event,
        .off_cpu_fraction = record->options.off_cpu_fraction,
        .off_cpu_min_ns = record->options.min_off_cpu_ns,
        .is_wall = record->options.is_wall,
        .has_live_window = record->options.is_live && record_options_have_profile(&record->options),
        .has_targets = !record->options.is_all,
        .has_no_tables = record->options.has_no_tables,
        .has_bounded_loops = record->options.has_bounded_loops,
        .may_be_unprivileged = may_be_unprivileged(record),
        .is_forced = record->options.is_forced,
        .context = record};
    agent_auto agent = NULL;
    enum err_code code = ERR_NONE;
    /* Before agent_open, so that the child inherits no descriptor of the agent. */
    if (record->options.command)
        code = child_process_prepare(record->options.command, &record->child, err);
    if (!record->options.is_unnamed)
        record->files = mapped_files_create();
    of_agent.on_binary = record->files ? keep_file : NULL;
    record->preparing = delay_notice_begin(&record->options.cli->terminal,
                                           "preparing: reading the running processes");
    if (!code)
        code = agent_open(&of_agent, &agent, err);
    if (code == ERR_FORBIDDEN && !of_agent.may_be_unprivileged) {
        const struct err why = *err;
        end_preparing(record, false);
        return err_set(err, code,
                       "%s; without these rights only the CPU time of your own programs can be "
                       "recorded: -p PID or -- COMMAND",
                       why.message);
    }
    if (!code)
        code = run_agent(record, agent, ret_result, err);
    end_preparing(record, false);
    if (code || ret_result->samples || !record_options_have_profile(&record->options))
        return code;
    window_result_fini(ret_result);
    struct agent_counts counts;
    agent_count(agent, &counts);
    return empty_recording_explain(
        &(struct empty_recording){.command = record->options.command,
                                  .target_count = record->options.target_count,
                                  .frequency_hz = record->options.frequency_hz,
                                  .event = record->options.event,
                                  .is_unprivileged = counts.is_unprivileged},
        err);
}

/* Checks before the recording that the output can be written and a server is set. */
static enum err_code check_ends(struct record *record, struct err *err)
{
    client_auto client = NULL;
    if (record->options.output) {
        const enum err_code code =
            record_output_try(record->options.output, record->options.cli->arena, err);
        if (code)
            return code;
    }
    return record->options.is_shared ? cli_connect(record->options.cli, NULL, &client, err)
                                     : ERR_NONE;
}

static enum err_code run_record(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct record record = {.options = {.cli = cli, .frequency_hz = RECORD_DEFAULT_HZ},
                            .child = {.start_fd = -1, .failure_fd = -1}};
    struct window_result result = {0};
    cli_parse(&record_command, argc, argv, &record.options);
    enum err_code code = check_ends(&record, err);
    if (!code)
        code = take_profile(&record, &result, err);
    /* Ignore the command's status after Ctrl-C, which ended the command, too. */
    cli->command_status = stop_signal_is_set() ? 0 : child_process_exit_status(&record.child);
    child_process_close(&record.child);
    if (!code && record_options_have_profile(&record.options))
        code = record_delivery_finish(&(struct record_delivery){.options = &record.options,
                                                                .files = record.files,
                                                                .target_name = record.target_name},
                                      result.profile, err);
    window_result_fini(&result);
    mapped_files_destroy(record.files);
    return code ? code : cli_flush(err);
}

const struct command record_command = {
    .name = "record",
    .summary = "sample running programs and write or share the profile",
    .options = &record_options_table,
    .arguments = ARGUMENTS_FILES,
    .run = run_record,
};
