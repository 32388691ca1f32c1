#include "agent/agent.h"

#include "agent/interpreter/interpreter.h"
#include "agent/kernel/kernel_program.h"
#include "agent/kernel/off_cpu.h"
#include "agent/kernel/perf_sideband.h"
#include "agent/labels/process_labels.h"
#include "agent/process/process.h"
#include "agent/process/process_event.h"
#include "agent/process/processes.h"
#include "agent/process/procfs_file.h"
#include "agent/process_attachments.h"
#include "agent/symbols/jit_symbols.h"
#include "agent/symbols/kernel_symbols.h"
#include "agent/unwind/unwind_failures.h"
#include "agent/unwind/unwind_maps.h"
#include "agent/unwind/unwind_names.h"
#include "agent/unwind/unwind_publisher.h"
#include "agent/unwind/user_unwinder.h"
#include "bpf/shared.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* A sample that waits for the next window. */
struct put_off {
    struct put_off *next;
    uint8_t event[]; /* a struct sample_event */
};

struct agent {
    struct agent_options options;
    struct label_source *label_source;
    struct binaries *binaries;
    struct processes *processes;
    struct kernel_symbols *kernel_symbols;
    struct perf_sideband *sideband;
    struct user_unwinder *unwinder;     /* NULL: by frame pointers alone */
    struct sample_event *walked;        /* a sample whose stack was walked here */
    struct kernel_program *program;     /* NULL: without rights */
    struct unwind_publisher *publisher; /* NULL: by frame pointers alone, and no interpreters */
    struct interpreters *interpreters;
    struct jit_budget jit_budget;
    struct window *window;
    struct window *live;     /* NULL: no live display */
    struct off_cpu *off_cpu; /* NULL: waits are not recorded */
    struct unwind_failures *failures;
    struct pollfd *polled;
    uint32_t polled_count;
    int64_t swept_ns;
    int64_t gathered_ns;   /* when events were last waited for */
    int64_t event_ns;      /* of the last one */
    uint32_t first_target; /* 0: none yet */
    uint64_t lost_events;
    uint64_t left_out_names;
    uint64_t *told; /* serials of binaries by their numbers */
    uint32_t told_count;
    uint64_t memory_bytes;
    uint64_t short_seconds;
    bool is_short;
    bool is_early_due; /* once for each second that is_short */
    uint64_t stops[UNWIND_STOP_COUNT];
    bool has_stopped;
    uint64_t own_samples; /* without rights */
    bool is_behind;       /* not all that processes did is published */
    bool is_turning;      /* what the kernel counted is being collected */
    uint32_t ended_turn;
    struct put_off *put_off;
    struct put_off **put_off_end;
};

/* Of all processes: names of code made at run time, and as much for those of scripts. */
#define NAMES_MAX_BYTES (UINT64_C(64) << 20)
#define SWEEP_NS CLOCK_NS_PER_S
#define SETTLED_NS (5 * CLOCK_NS_PER_S)
#define START_MAX_NS (10 * CLOCK_NS_PER_S)
#define PUBLISH_MAX_NS (CLOCK_NS_PER_S / 5)
#define GATHER_NS (2 * CLOCK_NS_PER_S / 1000)
enum { GATHER_MS = 1, TURN_MS = 1, PRIORITY = -10, SLICE_NS = 100000, STATM_MAX_BYTES = 4096 };

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
        return err_set_errno(err, ERR_CONFLICT, "/proc/self, which is needed");
    if (!span_parse_u64(span_of(text, (size_t)size), &number) || number != (uint64_t)getpid())
        return err_set(err, ERR_CONFLICT,
                       "/proc is that of another PID namespace, so that nothing would have a name: "
                       "mount this one's (unshare --mount-proc), or run in the host's (hostPID)");
    return ERR_NONE;
}

/* ---- what comes in ---- */

static void take_event(void *context, const struct process_event *event)
{
    struct agent *agent = context;
    if (event->kind == PROCESS_EVENT_LOST)
        agent->lost_events += event->lost_count;
    agent->event_ns = clock_monotonic_ns();
    processes_apply(agent->processes, event);
}

static void note_stop(struct agent *agent, const struct process *process,
                      const struct sample_event *event)
{
    const enum unwind_stop stop = (enum unwind_stop)event->stop;
    char text[64];
    const char *path = "[no mapping]";
    if (stop == UNWIND_GO_ON || unwind_stop_is_complete(stop) || event->user_count == 0)
        return;
    const struct process_mapping *mapping =
        process_find_mapping(process, event->addresses[event->user_count - 1]);
    /* Code that is made at run time need not keep frame pointers: QEMU's does not. */
    if (mapping && mapping->binary == BINARY_NONE) {
        snprintf(text, sizeof(text), "[no file] of %s", process->name);
        path = text;
    } else if (mapping) {
        path = binaries_get(agent->binaries, mapping->binary)->path;
    }
    unwind_failures_add(agent->failures, stop, path);
}

/* The process of a sample; NULL when there are too many. Its walk is counted. */
static struct process *find_process(struct agent *agent, const struct sample_event *event)
{
    struct process *process =
        processes_find(agent->processes, event->process_id, event->started_ns);
    const size_t stop_count = sizeof(agent->stops) / sizeof(*agent->stops);
    agent->stops[event->stop < stop_count ? event->stop : 0]++;
    if (process)
        note_stop(agent, process, event);
    return process;
}

static void take_wait(void *context, const struct sample_event *event, int64_t waited_ns)
{
    struct agent *agent = context;
    struct process *process = find_process(agent, event);
    if (process)
        window_add_wait(agent->window, process, event, waited_ns);
    if (process && agent->live)
        window_add_wait(agent->live, process, event, waited_ns);
}

static void add(struct agent *agent, struct process *process, const struct sample_event *event)
{
    window_add(agent->window, process, event);
    if (agent->live)
        window_add(agent->live, process, event);
}

/* Of a program that had just begun: its stack was not walked, since its mappings came after it. */
static const struct sample_event *walk_stack(struct agent *agent, const struct sample_event *event)
{
    const struct sample_stack *stack = sample_stack_of(event);
    struct process *process =
        processes_find(agent->processes, event->process_id, event->started_ns);
    if (event->stack_bytes < SAMPLE_STACK_HEAD_BYTES || !event->user_count || !process)
        return event;
    unwind_publisher_publish_process(agent->publisher, process);
    unwind_publisher_build_process(agent->publisher, process);
    if (!process->has_run)
        return event;
    struct stack_copy copy = {
        .pc = stack->pc,
        .start = stack->start,
        .bytes = span_of(stack->bytes, event->stack_bytes - SAMPLE_STACK_HEAD_BYTES)};
    memcpy(copy.registers, stack->registers, sizeof(stack->registers));
    struct sample_event *walked = agent->walked;
    memcpy(walked, event, SAMPLE_EVENT_HEAD_BYTES);
    const __u64 *kernel = event->addresses + event->user_count;
    memcpy(walked->addresses, event->addresses, event->user_count * sizeof(*kernel));
    user_unwinder_event(agent->unwinder, &process->run, &copy, walked);
    memcpy(walked->addresses + walked->user_count, kernel, event->kernel_count * sizeof(*kernel));
    walked->stack_bytes = 0;
    return walked;
}

/* While a turn of tallies ends the first samples of the next one come already: they are the next
 * window's. */
static bool put_off(struct agent *agent, const struct sample_event *event)
{
    if (!agent->is_turning || !event->key || (event->key & 1) == agent->ended_turn)
        return false;
    const size_t bytes = sample_event_bytes(event);
    struct put_off *later = mem_alloc(sizeof(*later) + bytes, 1);
    *later = (struct put_off){.next = NULL};
    memcpy(later->event, event, bytes);
    *agent->put_off_end = later;
    agent->put_off_end = &later->next;
    return true;
}

static void take_tick(struct agent *agent, const struct sample_event *event)
{
    if (put_off(agent, event))
        return;
    if (event->stack_bytes && agent->unwinder)
        event = walk_stack(agent, event);
    struct process *process = find_process(agent, event);
    if (process)
        add(agent, process, event);
}

/* Of a script's functions, which lie in the program's memory: when a wait is over, that may be. */
static void read_names(struct agent *agent, const struct sample_event *event)
{
    struct process *process =
        event->interpreted_count
            ? processes_find(agent->processes, event->process_id, event->started_ns)
            : NULL;
    const struct interpreted_frame *frames = sample_interpreted(event);
    struct interpreter_name ignored;
    if (!process || !interpreter_is_ready(process->interpreter))
        return;
    for (uint32_t i = 0; i < event->interpreted_count; i++)
        (void)interpreter_find_name(process->interpreter, &frames[i], &ignored);
}

static void take_wait_begin(struct agent *agent, const struct sample_event *event)
{
    if (event->stack_bytes && agent->unwinder)
        event = walk_stack(agent, event);
    read_names(agent, event);
    off_cpu_begin(agent->off_cpu, event);
}

static void take_sample(void *context, const struct sample_event *event)
{
    struct agent *agent = context;
    perf_sideband_read_until(agent->sideband, (int64_t)event->time_ns);
    if (event->kind == SAMPLE_TICK)
        take_tick(agent, event);
    else if (event->kind == SAMPLE_WAIT)
        take_wait_begin(agent, event);
    else
        off_cpu_end(agent->off_cpu, event);
}

/* Taken by the kernel itself, which walks by frame pointers; the copy of the stack is walked here.
 */
static void take_own_sample(void *context, struct sample_event *event,
                            const struct stack_copy *copy)
{
    struct agent *agent = context;
    struct process *process = processes_find(agent->processes, event->process_id, 0);
    agent->own_samples++;
    if (!process)
        return;
    static_assert(sizeof(event->comm) == sizeof(process->name), "as the kernel has it");
    memcpy(event->comm, process->name, sizeof(event->comm));
    /* All that is known of its mappings is there: tables are in time for each sample. */
    while (agent->publisher && unwind_publisher_publish(agent->publisher))
        ;
    if (copy && process->has_run)
        user_unwinder_event(agent->unwinder, &process->run, copy, event);
    const size_t stop_count = sizeof(agent->stops) / sizeof(*agent->stops);
    agent->stops[event->stop < stop_count ? event->stop : 0]++;
    note_stop(agent, process, event);
    add(agent, process, event);
}

static void note_change(void *context, struct process *process)
{
    struct agent *agent = context;
    if (agent->publisher && (process->is_target || !agent->options.has_targets))
        unwind_publisher_enqueue(agent->publisher, process);
}

static void note_end(void *context, struct process *process)
{
    struct agent *agent = context;
    if (agent->publisher)
        unwind_publisher_forget(agent->publisher, process);
}

/* Asked for each new address of a window and each mapping: what was taken costs one comparison. */
static void note_binary(void *context, const struct process *process,
                        const struct process_mapping *mapping)
{
    struct agent *agent = context;
    const struct binary *binary = binaries_get(agent->binaries, mapping->binary);
    vec_reserve_zeroed(agent->told, agent->told_count, (size_t)mapping->binary + 1);
    if (agent->told[mapping->binary] == binary->serial)
        return;
    const struct agent_binary told = {.build_id = binary->build_id,
                                      .path = binary->path,
                                      .process_id = process->shown_id,
                                      .mapping = mapping};
    if (agent->options.on_binary(agent->options.context, agent, &told))
        agent->told[mapping->binary] = binary->serial;
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
    memset(agent->told, 0, agent->told_count * sizeof(*agent->told));
}

int agent_open_binary(const struct agent *agent, const struct agent_binary *binary)
{
    const struct process_mapping *mapping = binary->mapping;
    return binaries_open(agent->binaries, mapping->binary, binary->process_id, mapping->start,
                         mapping->limit);
}

/* ---- life ---- */

static enum err_code check_kernel(const struct agent_options *options, struct err *err)
{
    struct utsname host;
    if (options->is_forced || uname(&host))
        return ERR_NONE;
    return agent_check_kernel(host.release, err);
}

/* A quarter of the limit: what is too much then is left out, and the rest goes on. */
static uint64_t most_name_bytes(uint64_t limit_bytes)
{
    return limit_bytes && limit_bytes / 4 < NAMES_MAX_BYTES ? limit_bytes / 4 : NAMES_MAX_BYTES;
}

static void create_parts(struct agent *agent)
{
    const bool tells_files = agent->options.has_targets && agent->options.on_binary;
    const struct processes_options of_processes = {.has_targets = agent->options.has_targets,
                                                   .on_change = note_change,
                                                   .on_forget = note_end,
                                                   .on_file = tells_files ? note_binary : NULL,
                                                   .on_program_end = process_attachments_release,
                                                   .on_fork = process_attachments_inherit,
                                                   .context = agent};
    agent->binaries = binaries_create();
    if (agent->options.form == WINDOW_FOR_OTLP)
        agent->label_source = label_source_create(agent->options.label_settings, agent->binaries);
    agent->processes = processes_create(agent->binaries, &of_processes);
    agent->interpreters = interpreters_create(&(struct interpreters_options){
        .binaries = agent->binaries,
        .max_code_bytes = most_name_bytes(agent->options.memory_limit_bytes),
        .on_ready = note_change,
        .context = agent});
    agent->kernel_symbols = kernel_symbols_create();
    agent->jit_budget.max_bytes = most_name_bytes(agent->options.memory_limit_bytes);
    const struct window_options of_window = {
        .form = agent->options.form,
        .frequency_hz = agent->options.frequency_hz,
        .event = agent->options.event,
        .off_cpu = agent->options.is_wall             ? WINDOW_WAITS_AS_WALL
                   : agent->options.off_cpu_share > 0 ? WINDOW_WAITS_BESIDE
                                                      : WINDOW_NO_WAITS,
        .off_cpu_share = agent->options.off_cpu_share,
        .binaries = agent->binaries,
        .processes = agent->processes,
        .kernel_symbols = agent->kernel_symbols,
        .jit_budget = &agent->jit_budget,
        .label_source = agent->label_source,
        .on_binary = agent->options.on_binary ? note_binary : NULL,
        .on_left_out = note_left_out,
        .context = agent,
    };
    agent->window = window_create(&of_window);
    if (agent->options.has_live_window)
        agent->live = window_create(&of_window);
    if (agent->options.off_cpu_share > 0)
        agent->off_cpu = off_cpu_create(agent->options.off_cpu_min_ns, take_wait, agent);
    agent->failures = unwind_failures_create();
}

static void set_host(struct agent *agent)
{
    unwind_publisher_set_host(
        agent->publisher, &(struct unwind_publisher_host){.on_refusal = agent->options.on_refusal,
                                                          .is_ending = agent->options.is_ending,
                                                          .context = agent->options.context});
}

/* Of copies of stacks, in this process. */
static void create_own_unwinding(struct agent *agent)
{
    struct unwind_memory memory;
    agent->unwinder = user_unwinder_create(NULL);
    user_unwinder_memory(agent->unwinder, &memory);
    agent->publisher = unwind_publisher_create(NULL, &memory, agent->binaries, agent->interpreters);
    set_host(agent);
}

static enum err_code open_unprivileged(struct agent *agent, struct err *err)
{
    const struct perf_sideband_options of_band = {.on_event = take_event,
                                                  .on_sample = take_own_sample,
                                                  .frequency_hz = agent->options.frequency_hz,
                                                  .event = agent->options.event,
                                                  .has_no_copies = agent->options.has_no_tables,
                                                  .context = agent};
    kernel_program_close(agent->program);
    agent->program = NULL;
    perf_sideband_close(agent->sideband);
    agent->sideband = NULL;
    const enum err_code code = perf_sideband_open(&of_band, &agent->sideband, err);
    if (code)
        return code;
    if (!agent->options.has_no_tables)
        create_own_unwinding(agent);
    return processes_scan(agent->processes, false, err);
}

static void create_unwinding(struct agent *agent)
{
    struct unwind_memory memory;
    struct unwind_memory_reader tables;
    kernel_program_unwind_memory(agent->program, &memory);
    agent->publisher =
        unwind_publisher_create(agent->program, &memory, agent->binaries, agent->interpreters);
    set_host(agent);
    kernel_program_tables(agent->program, &tables);
    agent->unwinder = user_unwinder_create(&tables);
    agent->walked = mem_new(struct sample_event, 1);
}

static enum err_code open_privileged(struct agent *agent, struct err *err)
{
    const struct kernel_program_options of_program = {
        .frequency_hz = agent->options.frequency_hz,
        .event = agent->options.event,
        .off_cpu_share = agent->options.off_cpu_share,
        .has_targets = agent->options.has_targets,
        .has_no_tables = agent->options.has_no_tables,
        .has_bounded_loops = agent->options.has_bounded_loops,
        .has_tallies = agent->options.has_tallies && !agent->options.has_live_window,
        .on_sample = take_sample,
        .context = agent,
    };
    const struct perf_sideband_options of_band = {.on_event = take_event, .context = agent};
    enum err_code code = kernel_program_open(&of_program, &agent->program, err);
    if (!code)
        code = perf_sideband_open(&of_band, &agent->sideband, err);
    if (!code && !agent->options.has_no_tables)
        create_unwinding(agent);
    /* Only now: what begins between the two is in the side band. */
    return code ? code : processes_scan(agent->processes, !agent->options.has_targets, err);
}

static enum err_code open_kernel(struct agent *agent, struct err *err)
{
    struct err why;
    const enum err_code code = open_privileged(agent, err);
    if (code != ERR_FORBIDDEN || !agent->options.may_be_unprivileged)
        return code;
    if (!open_unprivileged(agent, &why))
        return ERR_NONE;
    const struct err first = *err;
    return err_set(err, code, "%s; without: %s", first.message, why.message);
}

static void prepare_polling(struct agent *agent)
{
    arena_auto arena = arena_create();
    const uint32_t count = perf_sideband_fd_count(agent->sideband);
    int *fds = arena_new(arena, int, count);
    perf_sideband_fds(agent->sideband, fds);
    agent->polled = mem_new(struct pollfd, count + 1);
    agent->polled[0] = (struct pollfd){
        .fd = agent->program ? kernel_program_fd(agent->program) : -1, .events = POLLIN};
    for (uint32_t i = 0; i < count; i++)
        agent->polled[i + 1] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    agent->polled_count = count + 1;
}

enum err_code agent_open(const struct agent_options *options, struct agent **ret_agent,
                         struct err *err)
{
    enum err_code code = check_kernel(options, err);
    if (!code)
        code = agent_check_proc(err);
    if (code)
        return code;
    struct agent *agent = mem_new(struct agent, 1);
    agent->options = *options;
    agent->put_off_end = &agent->put_off;
    create_parts(agent);
    code = open_kernel(agent, err);
    if (code) {
        agent_close(agent);
        return code;
    }
    prepare_polling(agent);
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
    mem_free(agent->walked);
    while (agent->put_off) {
        struct put_off *next = agent->put_off->next;
        mem_free(agent->put_off);
        agent->put_off = next;
    }
    kernel_program_close(agent->program);
    kernel_symbols_destroy(agent->kernel_symbols);
    label_source_destroy(agent->label_source);
    binaries_destroy(agent->binaries);
    mem_free(agent->polled);
    mem_free(agent->told);
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

static enum err_code watch(struct agent *agent, uint32_t process_id, bool *ret_is_new,
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
                      : watch(agent, process_id, &is_new, err);
    if (!family.code && is_new)
        processes_make_target(agent->processes, process_id);
    if (!family.code && is_new)
        processes_each(agent->processes, add_child, &family);
    return family.code;
}

/* What there is to publish may have no end, and samples, windows and a stop wait meanwhile: what is
 * left comes at the next look, which is at once. */
static void publish(struct agent *agent, int64_t most_ns)
{
    const int64_t until_ns = clock_monotonic_ns() + most_ns;
    bool is_going_on = agent->publisher != NULL;
    while (is_going_on && clock_monotonic_ns() < until_ns) {
        is_going_on = unwind_publisher_publish(agent->publisher);
        if (is_going_on)
            perf_sideband_read_until(agent->sideband, clock_monotonic_ns());
    }
    agent->is_behind = is_going_on;
}

/* On a busy machine, too, a new program's mappings shall be known before it is sampled: before
 * others and, since Linux 6.12, in short slices, with which it runs when it wakes. Where that is
 * not allowed it goes without. */
static void come_first(void)
{
    /* struct sched_attr of sched_setattr(2), whose header contradicts libc's. */
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } wanted = {
        .size = sizeof(wanted), .policy = SCHED_OTHER, .nice = PRIORITY, .runtime_ns = SLICE_NS};
    if (syscall(SYS_sched_setattr, 0, &wanted, 0))
        (void)setpriority(PRIO_PROCESS, 0, PRIORITY);
}

/* Else the first sample in the kernel would have them read: 75 ms in which nobody looks at what
 * programs begin, whose frames of scripts are missing for so long. */
static void read_kernel_symbols(struct agent *agent)
{
    struct kernel_symbol ignored;
    (void)kernel_symbols_find(agent->kernel_symbols, UINT64_MAX, clock_monotonic_ns(), &ignored);
}

/* Resident pages of this process, mapped tables among them. */
static uint64_t resident_bytes(void)
{
    struct span text, first, second, rest;
    struct err ignored;
    uint64_t pages = 0;
    buf_auto statm;
    buf_init(&statm, STATM_MAX_BYTES);
    if (procfs_file_read("/proc/self/statm", &statm, &ignored))
        return 0;
    text = buf_span(&statm);
    if (!span_split(text, ' ', &first, &rest) || !span_split(rest, ' ', &second, &rest) ||
        !span_parse_u64(second, &pages))
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The kernel's for tables, which a memory cgroup counts as the agent's, and its resident memory
 * does not. */
static uint64_t kernel_table_bytes(const struct agent *agent)
{
    struct unwind_publisher_counts counts = {0};
    if (agent->program && agent->publisher)
        unwind_publisher_count(agent->publisher, &counts);
    return counts.shard_bytes;
}

/* A quarter of what there is beside resident memory is left for what that grows by until the next
 * look, since above the limit windows are cut short. */
static void limit_tables(struct agent *agent)
{
    const uint64_t limit_bytes = agent->options.memory_limit_bytes;
    agent->memory_bytes = resident_bytes();
    if (limit_bytes && agent->program && agent->publisher)
        unwind_publisher_limit(agent->publisher, limit_bytes > agent->memory_bytes
                                                     ? (limit_bytes - agent->memory_bytes) / 4 * 3
                                                     : 0);
}

/* Before the kernel ends the agent for it: what can grow does not, and what was sampled goes. */
static void watch_memory(struct agent *agent)
{
    const uint64_t limit_bytes = agent->options.memory_limit_bytes;
    limit_tables(agent);
    agent->is_short = limit_bytes && agent->memory_bytes + kernel_table_bytes(agent) > limit_bytes;
    agent->is_early_due = agent->is_short;
    agent->jit_budget.is_closed = agent->is_short;
    if (agent->is_short)
        mem_trim();
    if (agent->publisher)
        unwind_publisher_pause(agent->publisher, agent->is_short);
}

enum err_code agent_start(struct agent *agent, struct err *err)
{
    if (agent->program)
        read_kernel_symbols(agent);
    agent->event_ns = clock_monotonic_ns();
    limit_tables(agent);
    publish(agent, START_MAX_NS);
    come_first();
    /* Reading what was there already took a while, in which nothing was sampled. */
    window_begin_time(agent->window);
    if (agent->live)
        window_begin_time(agent->live);
    watch_memory(agent);
    return agent->program ? kernel_program_start(agent->program, err) : ERR_NONE;
}

static void read_all(struct agent *agent)
{
    if (agent->program)
        kernel_program_read(agent->program);
    perf_sideband_read_until(agent->sideband, clock_monotonic_ns());
    interpreters_poll(agent->interpreters, clock_monotonic_ns());
    publish(agent, PUBLISH_MAX_NS);
}

void agent_stop(struct agent *agent)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (agent->program)
        kernel_program_stop(agent->program);
    else
        perf_sideband_stop(agent->sideband);
    window_end_time(agent->window);
    read_all(agent);
    if (agent->off_cpu)
        off_cpu_cut(agent->off_cpu, now_ns);
    agent->has_stopped = true;
}

/* What a program does at its start is published at once the first time, since all its samples
 * take their stacks with them until then; what follows within a moment is together one publication.
 */
static void let_events_gather(struct agent *agent)
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
    if (agent->is_behind)
        timeout_ms = 0;
    timeout_ms = interpreters_timeout_ms(agent->interpreters, clock_monotonic_ns(), timeout_ms);
    if (poll(agent->polled, agent->polled_count, timeout_ms) > 0)
        let_events_gather(agent);
    read_all(agent);
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns - agent->swept_ns < SWEEP_NS)
        return;
    agent->swept_ns = now_ns;
    if (agent->program)
        kernel_program_unmap_shards(agent->program); /* else they are counted twice */
    watch_memory(agent);
    agent->short_seconds += agent->is_short;
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

/* ---- what comes out ---- */

bool agent_is_full(const struct agent *agent)
{
    return window_is_full(agent->window) ||
           (agent->is_early_due && window_has_samples(agent->window));
}

static enum err_code take(struct agent *agent, struct window *window,
                          struct window_result *ret_result, struct err *err)
{
    if (agent->off_cpu && !agent->has_stopped)
        off_cpu_cut(agent->off_cpu, clock_monotonic_ns());
    const struct process *main = processes_get(agent->processes, agent->first_target);
    return window_take(window, main, ret_result, err);
}

static void add_tally(void *context, uint64_t key, const struct sample_tally *tally)
{
    struct agent *agent = context;
    window_add_tally(agent->window, key, tally);
}

/* Programs that began before the turn are done a moment later. */
static void collect_tallies(struct agent *agent)
{
    agent->ended_turn = kernel_program_turn_tallies(agent->program);
    agent->is_turning = true;
    clock_sleep_ms(TURN_MS);
    kernel_program_read(agent->program);
    kernel_program_take_tallies(agent->program, agent->ended_turn, add_tally, agent);
    agent->is_turning = false;
}

static void take_put_off(struct agent *agent)
{
    struct put_off *later = agent->put_off;
    agent->put_off = NULL;
    agent->put_off_end = &agent->put_off;
    while (later) {
        struct put_off *next = later->next;
        take_sample(agent, (const struct sample_event *)later->event);
        mem_free(later);
        later = next;
    }
}

enum err_code agent_take(struct agent *agent, struct window_result *ret_result, struct err *err)
{
    const bool has_tallies = agent->program && agent->options.has_tallies;
    agent->is_early_due = false;
    if (has_tallies)
        collect_tallies(agent);
    const enum err_code code = take(agent, agent->window, ret_result, err);
    if (has_tallies)
        take_put_off(agent);
    return code;
}

enum err_code agent_take_live(struct agent *agent, struct window_result *ret_result,
                              struct err *err)
{
    return take(agent, agent->live, ret_result, err);
}

static void count_program(const struct agent *agent, struct kernel_program_counts *ret_counters,
                          struct agent_counts *counts)
{
    const struct kernel_program *program = agent->program;
    *ret_counters = (struct kernel_program_counts){.samples = agent->own_samples};
    counts->is_unprivileged = !program;
    counts->event = agent->options.event;
    if (!program)
        return;
    kernel_program_count(program, ret_counters);
    counts->event = kernel_program_event(program);
    counts->has_bounded_loops = !kernel_program_has_loop(program);
    counts->loop_error = kernel_program_loop_error(program);
}

void agent_count(const struct agent *agent, struct agent_counts *ret_counts)
{
    struct kernel_program_counts counters;
    struct processes_counts processes;
    struct agent_counts counts = {.lost_events = agent->lost_events,
                                  .left_out_names = agent->left_out_names};
    count_program(agent, &counters, &counts);
    processes_count(agent->processes, &processes);
    binaries_count(agent->binaries, &counts.binaries, &counts.unread_binaries);
    counts.samples = counters.samples;
    counts.tallied = counters.tallied;
    counts.off_cpu = counters.off_cpu;
    counts.lost_samples = counters.lost;
    counts.foreign = counters.foreign;
    counts.kernel_frames = counters.kernel_frames;
    counts.user_frames = counters.user_frames;
    counts.interpreted_frames = counters.interpreted_frames;
    interpreters_count(agent->interpreters, &counts.interpreters);
    counts.processes = processes.processes;
    counts.mappings = processes.mappings;
    counts.refused_processes = processes.refused_processes;
    counts.refused_mappings = processes.refused_mappings;
    counts.refused_names = agent->jit_budget.refused;
    if (agent->off_cpu)
        counts.refused_waits = counters.refused_waits + off_cpu_refused(agent->off_cpu);
    if (agent->publisher) {
        struct unwind_publisher_counts publisher;
        unwind_publisher_count(agent->publisher, &publisher);
        counts.tables = publisher.tables;
        counts.failed_tables = publisher.failed_tables;
        counts.shard_bytes = publisher.shard_bytes;
        counts.refused_tables = publisher.refused + publisher.refused_tables;
    }
    counts.refused = counts.refused_processes + counts.refused_mappings + counts.refused_names +
                     counts.refused_waits + counts.refused_tables;
    counts.unwanted = window_unwanted(agent->window);
    counts.memory_bytes = agent->memory_bytes;
    counts.is_short_of_memory = agent->is_short;
    counts.short_seconds = agent->short_seconds;
    memcpy(counts.stops, agent->stops, sizeof(counts.stops));
    *ret_counts = counts;
}

/* The most frequent of the reasons that are not complete and not said yet; 0: none is left. */
static uint32_t next_stop(const struct agent_counts *counts, const bool *is_said)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < UNWIND_STOP_COUNT; i++) {
        if (!is_said[i] && !unwind_stop_is_complete((enum unwind_stop)i) &&
            counts->stops[i] > (best ? counts->stops[best] : 0))
            best = i;
    }
    return best;
}

uint64_t agent_append_stops(const struct agent_counts *counts, struct buf *text)
{
    bool is_said[UNWIND_STOP_COUNT] = {0};
    uint64_t sum = 0;
    for (uint32_t i = next_stop(counts, is_said); i; i = next_stop(counts, is_said)) {
        is_said[i] = true;
        buf_printf(text, "%s%" PRIu64 " %s", sum ? ", " : "", (uint64_t)counts->stops[i],
                   unwind_stop_name((enum unwind_stop)i));
        sum += counts->stops[i];
    }
    return sum;
}

void agent_append_stop_places(const struct agent *agent, uint32_t limit, struct buf *text)
{
    unwind_failures_append(agent->failures, limit, text);
}
