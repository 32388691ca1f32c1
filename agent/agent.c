#include "agent/agent.h"

#include "agent/agent_internal.h"
#include "agent/interpreter/interpreter.h"
#include "agent/kernel/event_opener.h"
#include "agent/kernel/kernel_program.h"
#include "agent/kernel/off_cpu.h"
#include "agent/kernel/perf_sideband.h"
#include "agent/labels/label_source.h"
#include "agent/labels/process_labels.h"
#include "agent/process/process.h"
#include "agent/process/processes.h"
#include "agent/process_attachments.h"
#include "agent/symbols/kernel_symbols.h"
#include "agent/unwind/unwind_failures.h"
#include "agent/unwind/unwind_publisher.h"
#include "agent/unwind/user_unwinder.h"
#include "bpf/shared.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SWEEP_NS CLOCK_NS_PER_S
#define SETTLED_NS (5 * CLOCK_NS_PER_S)
/* How long publishing may take before the first sample, and in one call of agent_poll. */
#define START_MAX_NS (10 * CLOCK_NS_PER_S)
#define PUBLISH_MAX_NS (CLOCK_NS_PER_S / 5)
/* Process events that follow others within GATHER_NS are read after a pause of GATHER_MS. */
#define GATHER_NS (2 * CLOCK_NS_PER_MS)
enum {
    GATHER_MS = 1,
    TALLY_END_MS = 1, /* how long a BPF program may still write to the map of an ended phase */
    NICE = -10,
    SLICE_NS = 100000,
};

enum err_code agent_check_kernel(const char *release, struct err *err)
{
    unsigned major, minor;
    if (sscanf(release, "%u.%u", &major, &minor) != 2)
        return ERR_NONE;
    if ((major == 5 && minor == 19) || (major == 6 && minor == 0))
        return err_set(err, ERR_UNSUPPORTED,
                       "Linux %s can hang when programs run at perf events (5.19 to 6.0): use "
                       "another kernel, or --force",
                       release);
    return ERR_NONE;
}

enum err_code agent_check_proc(struct err *err)
{
    char text[32];
    uint64_t number;
    const ssize_t size = readlink("/proc/self", text, sizeof(text));
    if (size < 0)
        return err_set_errno(err, ERR_CONFLICT, "reading /proc/self");
    if (!span_parse_u64(span_of(text, (size_t)size), &number) || number != (uint64_t)getpid())
        return err_set(
            err, ERR_CONFLICT,
            "/proc belongs to another PID namespace, so samples would have no names: mount "
            "that of this one (unshare --mount-proc), or run in the host's (hostPID)");
    return ERR_NONE;
}

/* ---- callbacks ---- */

static void note_change(void *context, struct process *process)
{
    struct agent *agent = context;
    if (agent->publisher && (process->is_target || !agent->options.has_targets))
        unwind_publisher_enqueue(agent->publisher, process);
}

static void note_forget(void *context, struct process *process)
{
    struct agent *agent = context;
    if (agent->publisher)
        unwind_publisher_forget(agent->publisher, process);
}

static uint64_t *reported_serial(struct agent *agent, uint32_t number)
{
    vec_reserve_zeroed(agent->reported_serials, agent->reported_count, (size_t)number + 1);
    return &agent->reported_serials[number];
}

/* Reports a binary to on_binary until it returns true. Called for each new address of a window and
 * for each mapping, so a reported binary must cost one comparison only. */
static void note_binary(void *context, const struct process *process,
                        const struct process_mapping *mapping)
{
    struct agent *agent = context;
    const struct binary *binary = binaries_get(agent->binaries, mapping->binary);
    uint64_t *serial = reported_serial(agent, mapping->binary);
    if (*serial == binary->serial)
        return;
    const struct agent_binary reported = {.build_id = binary->build_id,
                                          .path = binary->path,
                                          .process_id = process->shown_id,
                                          .mapping = mapping};
    if (agent->options.on_binary(agent->options.context, agent, &reported))
        *serial = binary->serial;
}

static void note_left_out(void *context, uint32_t process_id)
{
    struct agent *agent = context;
    const struct process *process = processes_get(agent->processes, process_id);
    agent->left_out_names++;
    if (agent->options.on_left_out)
        agent->options.on_left_out(agent->options.context, process_id,
                                   process ? process->name : "");
}

void agent_report_binaries_again(struct agent *agent)
{
    if (agent->reported_count)
        memset(agent->reported_serials, 0,
               agent->reported_count * sizeof(*agent->reported_serials));
}

int agent_open_binary(const struct agent *agent, const struct agent_binary *binary)
{
    const struct process_mapping *mapping = binary->mapping;
    return binaries_open(agent->binaries, mapping->binary, binary->process_id, mapping->start,
                         mapping->limit);
}

/* ---- opening and closing ---- */

static enum err_code check_kernel(const struct agent_options *options, struct err *err)
{
    struct utsname host;
    if (options->is_forced || uname(&host))
        return ERR_NONE;
    return agent_check_kernel(host.release, err);
}

static void create_parts(struct agent *agent)
{
    const bool reports_files = agent->options.has_targets && agent->options.on_binary;
    const struct processes_options processes = {.has_targets = agent->options.has_targets,
                                                .on_change = note_change,
                                                .on_forget = note_forget,
                                                .on_file = reports_files ? note_binary : NULL,
                                                .on_program_end = process_attachments_release,
                                                .on_fork = process_attachments_inherit,
                                                .context = agent};
    agent->binaries = binaries_create();
    if (agent->options.form == WINDOW_FOR_OTLP)
        agent->label_source = label_source_create(agent->options.label_settings, agent->binaries);
    agent->processes = processes_create(agent->binaries, &processes);
    agent->interpreters = interpreters_create(
        &(struct interpreters_options){.binaries = agent->binaries,
                                       .max_code_bytes = agent_memory_name_bytes(agent),
                                       .on_ready = note_change,
                                       .context = agent});
    agent->kernel_symbols = kernel_symbols_create();
    agent->jit_budget.max_bytes = agent_memory_name_bytes(agent);
    const struct window_options window = {
        .form = agent->options.form,
        .frequency_hz = agent->options.frequency_hz,
        .event = agent->options.event,
        .off_cpu = agent->options.is_wall                ? WINDOW_OFF_CPU_AS_WALL
                   : agent->options.off_cpu_fraction > 0 ? WINDOW_OFF_CPU_SEPARATE
                                                         : WINDOW_OFF_CPU_NONE,
        .off_cpu_fraction = agent->options.off_cpu_fraction,
        .binaries = agent->binaries,
        .processes = agent->processes,
        .kernel_symbols = agent->kernel_symbols,
        .jit_budget = &agent->jit_budget,
        .label_source = agent->label_source,
        .on_binary = agent->options.on_binary ? note_binary : NULL,
        .on_left_out = note_left_out,
        .context = agent,
    };
    agent->window = window_create(&window);
    if (agent->options.has_live_window)
        agent->live = window_create(&window);
    if (agent->options.off_cpu_fraction > 0)
        agent->off_cpu = off_cpu_create(agent->options.off_cpu_min_ns, agent_input_off_cpu, agent);
    agent->failures = unwind_failures_create();
}

static void set_publisher_host(struct agent *agent)
{
    unwind_publisher_set_host(agent->publisher,
                              &(struct table_builder_host){.on_refusal = agent->options.on_refusal,
                                                           .is_ending = agent->options.is_ending,
                                                           .context = agent->options.context});
}

/* Unprivileged: copies of stacks are unwound in this process, with tables in plain memory. */
static void create_user_unwinding(struct agent *agent)
{
    struct unwind_memory memory;
    agent->unwinder = user_unwinder_create(NULL);
    user_unwinder_memory(agent->unwinder, &memory);
    agent->publisher = unwind_publisher_create(NULL, &memory, agent->binaries, agent->interpreters);
    set_publisher_host(agent);
}

static enum err_code open_unprivileged(struct agent *agent, struct err *err)
{
    const struct perf_sideband_options sideband = {.on_event = agent_input_event,
                                                   .on_sample = agent_input_unprivileged_sample,
                                                   .frequency_hz = agent->options.frequency_hz,
                                                   .event = agent->options.event,
                                                   .has_no_copies = agent->options.has_no_tables,
                                                   .context = agent};
    kernel_program_close(agent->program);
    agent->program = NULL;
    perf_sideband_close(agent->sideband);
    agent->sideband = NULL;
    const enum err_code code = perf_sideband_open(&sideband, &agent->sideband, err);
    if (code)
        return code;
    if (!agent->options.has_no_tables)
        create_user_unwinding(agent);
    return processes_scan(agent->processes, false, err);
}

/* The kernel program unwinds. Samples that carry a stack are unwound here, with the same tables. */
static void create_kernel_unwinding(struct agent *agent)
{
    struct unwind_memory memory;
    struct unwind_memory_reader tables;
    kernel_program_unwind_memory(agent->program, &memory);
    agent->publisher =
        unwind_publisher_create(agent->program, &memory, agent->binaries, agent->interpreters);
    set_publisher_host(agent);
    kernel_program_tables(agent->program, &tables);
    agent->unwinder = user_unwinder_create(&tables);
    agent->unwound = mem_new(struct sample_event, 1);
}

static enum err_code open_privileged(struct agent *agent, struct err *err)
{
    const struct kernel_program_options program = {
        .frequency_hz = agent->options.frequency_hz,
        .event = agent->options.event,
        .off_cpu_fraction = agent->options.off_cpu_fraction,
        .has_targets = agent->options.has_targets,
        .has_no_tables = agent->options.has_no_tables,
        .has_bounded_loops = agent->options.has_bounded_loops,
        .has_tallies = agent->options.has_tallies && !agent->options.has_live_window,
        .opener = agent->opener,
        .on_sample = agent_input_sample,
        .context = agent,
    };
    const struct perf_sideband_options sideband = {
        .opener = agent->opener, .on_event = agent_input_event, .context = agent};
    enum err_code code = kernel_program_open(&program, &agent->program, err);
    if (!code)
        code = perf_sideband_open(&sideband, &agent->sideband, err);
    if (code)
        return code;
    if (!agent->options.has_no_tables)
        create_kernel_unwinding(agent);
    /* After perf_sideband_open, so that a change during the scan is recorded as an event. */
    return processes_scan(agent->processes, !agent->options.has_targets, err);
}

/* Falls back to sampling without privileges if that is allowed. */
static enum err_code open_kernel(struct agent *agent, struct err *err)
{
    struct err why;
    const enum err_code code = open_privileged(agent, err);
    if (code != ERR_FORBIDDEN || !agent->options.may_be_unprivileged)
        return code;
    if (!open_unprivileged(agent, &why))
        return ERR_NONE;
    const struct err first = *err;
    return err_set(err, code, "%s; sampling without privileges failed, too: %s", first.message,
                   why.message);
}

enum err_code agent_open(const struct agent_options *options, struct agent **ret_agent,
                         struct err *err)
{
    enum err_code code = check_kernel(options, err);
    if (code)
        return code;
    code = agent_check_proc(err);
    if (code)
        return code;
    struct agent *agent = mem_new(struct agent, 1);
    agent->options = *options;
    agent->deferred_end = &agent->deferred;
    if (options->will_drop_rights)
        agent->opener = event_opener_start();
    create_parts(agent);
    code = open_kernel(agent, err);
    if (code) {
        agent_close(agent);
        return code;
    }
    agent_cpus_prepare_polling(agent);
    *ret_agent = agent;
    return ERR_NONE;
}

void agent_close(struct agent *agent)
{
    if (!agent)
        return;
    perf_sideband_close(agent->sideband);
    window_destroy(agent->window);
    window_destroy(agent->live);
    off_cpu_destroy(agent->off_cpu);
    unwind_failures_destroy(agent->failures);
    processes_destroy(agent->processes);
    interpreters_destroy(agent->interpreters);
    unwind_publisher_destroy(agent->publisher);
    user_unwinder_destroy(agent->unwinder);
    mem_free(agent->unwound);
    while (agent->deferred) {
        struct deferred_sample *next = agent->deferred->next;
        mem_free(agent->deferred);
        agent->deferred = next;
    }
    kernel_program_close(agent->program);
    kernel_symbols_destroy(agent->kernel_symbols);
    label_source_destroy(agent->label_source);
    binaries_destroy(agent->binaries);
    event_opener_stop(agent->opener);
    mem_free(agent->sampled_cpus);
    mem_free(agent->polled);
    mem_free(agent->reported_serials);
    mem_free(agent);
}

/* ---- targets ---- */

struct family {
    struct agent *agent;
    uint32_t parent_id;
    enum err_code code;
    struct err *err;
};

static void add_child(void *context, struct process *process)
{
    struct family *family = context;
    if (!family->code && process->parent_id == family->parent_id &&
        process->process_id != family->parent_id)
        family->code = agent_add_target(family->agent, process->process_id, family->err);
}

static enum err_code watch_process(struct agent *agent, uint32_t process_id, bool *ret_is_new,
                                   struct err *err)
{
    const struct process *known = processes_get(agent->processes, process_id);
    *ret_is_new = !known || !known->is_target;
    return *ret_is_new ? perf_sideband_watch(agent->sideband, process_id, err) : ERR_NONE;
}

enum err_code agent_add_target(struct agent *agent, uint32_t process_id, struct err *err)
{
    struct family family = {.agent = agent, .parent_id = process_id, .err = err};
    bool is_new;
    if (!agent->first_target)
        agent->first_target = process_id;
    family.code = agent->program
                      ? kernel_program_add_target(agent->program, process_id, &is_new, err)
                      : watch_process(agent, process_id, &is_new, err);
    if (!family.code && is_new)
        processes_make_target(agent->processes, process_id);
    if (!family.code && is_new)
        processes_each(agent->processes, add_child, &family);
    return family.code;
}

/* Publishes queued processes and builds tables, for at most most_ns: other programs may cause such
 * work without end, which would delay samples, windows and a stop. If work is left, the next
 * agent_poll does not wait. */
static void publish_changes(struct agent *agent, int64_t most_ns)
{
    const int64_t until_ns = clock_monotonic_ns() + most_ns;
    bool has_more = agent->publisher != NULL;
    while (has_more && clock_monotonic_ns() < until_ns) {
        has_more = unwind_publisher_publish(agent->publisher);
        if (has_more)
            perf_sideband_read_until(agent->sideband, clock_monotonic_ns());
    }
    agent->is_publishing_due = has_more;
}

/* Raises the priority of the agent, so that it knows the mappings of a new program before the first
 * sample, on a busy host too. Since Linux 6.12 a thread with a short slice runs sooner after it
 * wakes. Without the permission the agent keeps its priority. */
static void raise_priority(void)
{
    /* struct sched_attr of sched_setattr(2): linux/sched/types.h conflicts with libc's sched.h. */
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } wanted = {
        .size = sizeof(wanted), .policy = SCHED_OTHER, .nice = NICE, .runtime_ns = SLICE_NS};
    if (syscall(SYS_sched_setattr, 0, &wanted, 0))
        (void)setpriority(PRIO_PROCESS, 0, NICE);
}

/* Reads the kernel's symbols before sampling starts. Otherwise the first sample in the kernel would
 * cause the read, which takes 75 ms: meanwhile no process event would be read, and new scripts
 * would have no frames. */
static void read_kernel_symbols(struct agent *agent)
{
    struct kernel_symbol ignored;
    (void)kernel_symbols_find(agent->kernel_symbols, UINT64_MAX, clock_monotonic_ns(), &ignored);
}

enum err_code agent_start(struct agent *agent, struct err *err)
{
    if (agent->program)
        read_kernel_symbols(agent);
    agent->event_ns = clock_monotonic_ns();
    agent_memory_limit_tables(agent);
    publish_changes(agent, START_MAX_NS);
    raise_priority();
    /* Nothing was sampled while the running processes were published. */
    window_begin_time(agent->window);
    if (agent->live)
        window_begin_time(agent->live);
    agent_memory_watch(agent);
    const enum err_code code =
        agent->program ? kernel_program_start(agent->program, err) : ERR_NONE;
    if (!code)
        agent_cpus_begin(agent);
    return code;
}

static void read_input(struct agent *agent)
{
    if (agent->program)
        kernel_program_read(agent->program);
    perf_sideband_read_until(agent->sideband, clock_monotonic_ns());
    interpreters_poll(agent->interpreters, clock_monotonic_ns());
    publish_changes(agent, PUBLISH_MAX_NS);
}

void agent_stop(struct agent *agent)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (agent->program)
        kernel_program_stop(agent->program);
    else
        perf_sideband_stop(agent->sideband);
    window_end_time(agent->window);
    read_input(agent);
    if (agent->off_cpu)
        off_cpu_cut(agent->off_cpu, now_ns);
    agent->has_stopped = true;
}

/* Waits GATHER_MS for more process events, if others were read just before. The first events of a
 * new program are published at once, because its samples carry copies of their stacks until then;
 * the events that follow are published together. */
static void gather_events(struct agent *agent)
{
    bool has_events = false;
    for (uint32_t i = 1; i < agent->polled_count; i++)
        has_events |= agent->polled[i].revents != 0;
    if (!has_events)
        return;
    if (clock_monotonic_ns() - agent->gathered_ns < GATHER_NS)
        clock_sleep_ms(GATHER_MS);
    agent->gathered_ns = clock_monotonic_ns();
}

void agent_poll(struct agent *agent, int timeout_ms)
{
    if (agent->is_publishing_due)
        timeout_ms = 0;
    timeout_ms = interpreters_timeout_ms(agent->interpreters, clock_monotonic_ns(), timeout_ms);
    if (poll(agent->polled, agent->polled_count, timeout_ms) > 0)
        gather_events(agent);
    read_input(agent);
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns - agent->swept_ns < SWEEP_NS)
        return;
    agent->swept_ns = now_ns;
    agent_cpus_watch(agent);
    if (agent->program)
        kernel_program_unmap_shards(agent->program); /* mapped shards would be counted twice */
    agent_memory_watch(agent);
    agent->short_seconds += agent->is_short_of_memory;
    processes_sweep(agent->processes, now_ns);
    if (agent->publisher)
        unwind_publisher_sweep(agent->publisher, now_ns);
}

bool agent_is_settled(const struct agent *agent)
{
    struct interpreter_counts counts;
    uint64_t ready = 0;
    interpreters_count(agent->interpreters, &counts);
    for (uint32_t i = 0; i < INTERPRETER_KINDS; i++)
        ready += counts.outcomes[i][INTERPRETER_READY];
    return ready == 0 && clock_monotonic_ns() - agent->event_ns > SETTLED_NS;
}

/* ---- windows ---- */

bool agent_is_full(const struct agent *agent)
{
    return window_is_full(agent->window) ||
           (agent->is_early_due && window_has_samples(agent->window));
}

static enum err_code take_window(struct agent *agent, struct window *window,
                                 struct window_result *ret_result, struct err *err)
{
    if (agent->off_cpu && !agent->has_stopped)
        off_cpu_cut(agent->off_cpu, clock_monotonic_ns());
    const struct process *main = processes_get(agent->processes, agent->first_target);
    return window_take(window, main, ret_result, err);
}

/* Waits TALLY_END_MS for BPF programs that still write to the map of the phase that has ended. */
static void collect_tallies(struct agent *agent)
{
    agent->ended_phase = kernel_program_switch_tallies(agent->program);
    agent->is_collecting = true;
    clock_sleep_ms(TALLY_END_MS);
    kernel_program_read(agent->program);
    kernel_program_take_tallies(agent->program, agent->ended_phase, agent_input_tally, agent);
    agent->is_collecting = false;
}

enum err_code agent_take(struct agent *agent, struct window_result *ret_result, struct err *err)
{
    const bool has_tallies = agent->program && agent->options.has_tallies;
    agent->is_early_due = false;
    if (has_tallies)
        collect_tallies(agent);
    const enum err_code code = take_window(agent, agent->window, ret_result, err);
    if (has_tallies)
        agent_input_deferred(agent);
    return code;
}

enum err_code agent_take_live(struct agent *agent, struct window_result *ret_result,
                              struct err *err)
{
    return take_window(agent, agent->live, ret_result, err);
}
