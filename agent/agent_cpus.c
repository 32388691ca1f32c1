/*
 * When a CPU goes offline, the kernel stops its perf events permanently. When the CPU returns, as
 * all but one do at the end of a suspend, it is not sampled, and no call reports an error. Once a
 * second the list of online CPUs is compared with that of the sampled ones, and the perf events of
 * CPUs that are only in the first list are opened (again).
 *
 * The lists do not show a CPU that was offline for less than a second, or while the agent was
 * suspended too. Therefore each CPU is checked after a suspend and once a minute. A check
 * interrupts the CPU, so it is not made every second.
 *
 * Process events that happened on such a CPU are lost: /proc is scanned when they are recorded
 * again.
 */
#include "agent/agent_internal.h"
#include "agent/kernel/cpu_list.h"
#include "agent/kernel/kernel_program.h"
#include "agent/kernel/perf_sideband.h"
#include "agent/process/process.h"
#include "agent/process/process_event.h"
#include "agent/process/processes.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"

#define CHECK_NS (60 * CLOCK_NS_PER_S)
/* The two clocks are read one after the other, so their difference varies a little. */
#define SUSPEND_MIN_NS (CLOCK_NS_PER_MS)

/* False: the list cannot be read. */
static bool list_online(struct arena *arena, struct cpu_list *ret_online)
{
    struct err ignored;
    uint32_t *cpus, count;
    if (cpu_list_online(arena, &cpus, &count, &ignored))
        return false;
    *ret_online = (struct cpu_list){cpus, count};
    return true;
}

static void set_sampled(struct agent *agent, struct cpu_list cpus)
{
    vec_reserve(agent->sampled_cpus, agent->sampled_cpu_capacity, cpus.count);
    memcpy(agent->sampled_cpus, cpus.cpus, cpus.count * sizeof(*cpus.cpus));
    agent->sampled_cpu_count = cpus.count;
}

void agent_cpus_begin(struct agent *agent)
{
    arena_auto arena = arena_create();
    struct cpu_list online = {0};
    if (list_online(arena, &online))
        set_sampled(agent, online);
    agent->suspended_ns = clock_boot_ns() - clock_monotonic_ns();
}

/* ---- checks ---- */

static bool is_check_due(struct agent *agent)
{
    const int64_t now_ns = clock_monotonic_ns(), suspended_ns = clock_boot_ns() - now_ns;
    const bool was_suspended = suspended_ns - agent->suspended_ns > SUSPEND_MIN_NS;
    if (was_suspended)
        agent->suspended_ns = suspended_ns;
    if (!was_suspended && agent->cpus_checked_ns && now_ns - agent->cpus_checked_ns < CHECK_NS)
        return false;
    agent->cpus_checked_ns = now_ns;
    return true;
}

static bool is_sampled(const struct agent *agent, uint32_t cpu)
{
    return perf_sideband_records_cpu(agent->sideband, cpu) &&
           (!agent->program || kernel_program_samples_cpu(agent->program, cpu));
}

static struct cpu_list check_cpus(const struct agent *agent, struct cpu_list cpus,
                                  struct arena *arena)
{
    uint32_t *kept = arena_new(arena, uint32_t, cpus.count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < cpus.count; i++)
        if (is_sampled(agent, cpus.cpus[i]))
            kept[count++] = cpus.cpus[i];
    return (struct cpu_list){kept, count};
}

/* ---- beginning ---- */

struct watch {
    struct agent *agent;
    uint32_t cpu;
    enum err_code code;
    struct err *err;
};

static void watch_target(void *context, struct process *process)
{
    struct watch *watch = context;
    if (watch->code || !process->is_target)
        return;
    watch->code = perf_sideband_watch_cpu(watch->agent->sideband, process->process_id, watch->cpu,
                                          watch->err);
    /* The target has ended, or runs another user's program now. */
    if (watch->code == ERR_NOT_FOUND || watch->code == ERR_FORBIDDEN)
        watch->code = ERR_NONE;
}

static enum err_code begin_cpu(struct agent *agent, uint32_t cpu, struct err *err)
{
    struct watch watch = {.agent = agent, .cpu = cpu, .err = err};
    if (!agent->program && perf_sideband_records_cpu(agent->sideband, cpu))
        return ERR_NONE; /* the events of threads continue when a CPU returns */
    const enum err_code code = perf_sideband_open_cpu(agent->sideband, cpu, err);
    if (code)
        return code;
    if (agent->program)
        return kernel_program_start_cpu(agent->program, cpu, err);
    processes_each(agent->processes, watch_target, &watch);
    return watch.code;
}

/* Begins sampling on each of these CPUs. Returns those on which it failed. *ret_errors: the number
 * of CPUs on which it failed although they are online; err has the last of these errors. */
static struct cpu_list begin_cpus(struct agent *agent, struct cpu_list cpus, struct arena *arena,
                                  uint32_t *ret_errors, struct err *err)
{
    uint32_t *failed = arena_new(arena, uint32_t, cpus.count + 1);
    uint32_t count = 0, errors = 0;
    for (uint32_t i = 0; i < cpus.count; i++) {
        struct err why;
        const enum err_code code = begin_cpu(agent, cpus.cpus[i], &why);
        if (code)
            failed[count++] = cpus.cpus[i];
        if (code && code != ERR_NOT_FOUND) {
            errors++;
            *err = why;
        }
    }
    *ret_errors = errors;
    return (struct cpu_list){failed, count};
}

static void begin_missing(struct agent *agent, struct cpu_list online, struct cpu_list missing,
                          struct arena *arena)
{
    struct err err;
    perf_sideband_read_until(agent->sideband, clock_monotonic_ns());
    const struct cpu_list failed = begin_cpus(agent, missing, arena, &agent->unsampled_cpus, &err);
    const uint32_t begun = missing.count - failed.count;
    set_sampled(agent, cpu_list_difference(online, failed, arena));
    agent_cpus_prepare_polling(agent);
    agent->restarted_cpus += begun;
    if (begun)
        processes_apply(agent->processes, &(struct process_event){.kind = PROCESS_EVENT_LOST,
                                                                  .time_ns = clock_monotonic_ns()});
    if (agent->options.on_cpus && (begun || agent->unsampled_cpus))
        agent->options.on_cpus(agent->options.context, begun,
                               agent->unsampled_cpus ? err.message : NULL);
}

void agent_cpus_watch(struct agent *agent)
{
    arena_auto arena = arena_create();
    struct cpu_list online;
    if (!list_online(arena, &online))
        return;
    const struct cpu_list known = {agent->sampled_cpus, agent->sampled_cpu_count};
    struct cpu_list sampled = cpu_list_common(known, online, arena);
    if (is_check_due(agent))
        sampled = check_cpus(agent, sampled, arena);
    const struct cpu_list missing = cpu_list_difference(online, sampled, arena);
    agent->unsampled_cpus = 0;
    if (missing.count)
        begin_missing(agent, online, missing, arena);
    else
        set_sampled(agent, sampled);
}

void agent_cpus_prepare_polling(struct agent *agent)
{
    arena_auto arena = arena_create();
    const uint32_t count = perf_sideband_fd_count(agent->sideband);
    int *fds = arena_new(arena, int, count);
    perf_sideband_fds(agent->sideband, fds);
    mem_free(agent->polled);
    agent->polled = mem_new(struct pollfd, count + 1);
    agent->polled[0] = (struct pollfd){
        .fd = agent->program ? kernel_program_fd(agent->program) : -1, .events = POLLIN};
    for (uint32_t i = 0; i < count; i++)
        agent->polled[i + 1] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    agent->polled_count = count + 1;
}
