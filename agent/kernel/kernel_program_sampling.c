#include "agent/kernel/event_opener.h"
#include "agent/kernel/kernel_program_internal.h"
#include "agent/kernel/perf_event.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <assert.h>
#include <bpf/libbpf.h>
#include <errno.h>

static const char *const process_programs[] = {"follow_fork", "forget_program", "forget_process"};
enum { PROCESS_PROGRAM_COUNT = sizeof(process_programs) / sizeof(*process_programs) };
static_assert(PROCESS_PROGRAM_COUNT + 1 == KERNEL_PROGRAM_LINKS_MAX,
              "links has one entry for each of these and one for the program at thread switches");

static enum err_code attach_program(struct kernel_program *program, const char *name, int event_fd,
                                    struct bpf_link **ret_link, struct err *err)
{
    struct bpf_program *part = bpf_object__find_program_by_name(program->object, name);
    struct bpf_link *link =
        event_fd >= 0 ? bpf_program__attach_perf_event(part, event_fd) : bpf_program__attach(part);
    if (!link)
        return kernel_program_fail(errno, "attaching the kernel program", err);
    *ret_link = link;
    return ERR_NONE;
}

/* Attaches a program that runs on all CPUs, also on those that come online later. */
static enum err_code attach_to_all_cpus(struct kernel_program *program, const char *name,
                                        struct err *err)
{
    enum err_code code =
        attach_program(program, name, -1, &program->links[program->link_count], err);
    program->link_count += !code;
    return code;
}

/* Sets the error for an event that could not be opened; errno says why. A virtual machine, for
 * example, may lack the counter. */
static enum err_code fail_event(enum event_kind kind, struct err *err)
{
    const struct event_facts *facts = event_facts(kind);
    if (facts->is_hardware && (errno == ENOENT || errno == EOPNOTSUPP || errno == EINVAL))
        return err_set(err, ERR_UNSUPPORTED,
                       "this host cannot count %s: its processor has no such counter, or it is a "
                       "virtual machine without access to it; use cpu-clock, page-faults or "
                       "context-switches, which every host can count",
                       facts->name);
    return kernel_program_fail(errno, "opening a perf event", err);
}

/* The index of the sampler of a CPU; sampler_count: there is none. */
static uint32_t find_sampler(const struct kernel_program *program, uint32_t cpu)
{
    uint32_t i = 0;
    while (i < program->sampler_count && program->samplers[i].cpu != cpu)
        i++;
    return i;
}

static struct cpu_sampler *add_sampler(struct kernel_program *program, uint32_t cpu)
{
    const uint32_t i = find_sampler(program, cpu);
    if (i == program->sampler_count) {
        vec_reserve(program->samplers, program->sampler_capacity, program->sampler_count + 1);
        program->samplers[program->sampler_count++] = (struct cpu_sampler){.cpu = cpu};
    }
    return &program->samplers[i];
}

enum err_code kernel_program_start_cpu(struct kernel_program *program, uint32_t cpu,
                                       struct err *err)
{
    const struct kernel_program_options *options = &program->options;
    struct cpu_sampler *sampler = add_sampler(program, cpu);
    bpf_link__destroy(sampler->link);
    sampler->link = NULL;
    sampler->fd = event_opener_sampler(options->opener, cpu, options->frequency_hz, options->event);
    if (sampler->fd < 0 && errno == ENODEV)
        return err_set(err, ERR_NOT_FOUND, "CPU %u is offline", cpu);
    if (sampler->fd < 0)
        return fail_event(options->event, err);
    /* If this succeeds, the link owns the descriptor. */
    enum err_code code = attach_program(program, "sample_cpu", sampler->fd, &sampler->link, err);
    if (code)
        os_close(sampler->fd);
    return code;
}

bool kernel_program_samples_cpu(const struct kernel_program *program, uint32_t cpu)
{
    const uint32_t i = find_sampler(program, cpu);
    return i < program->sampler_count && program->samplers[i].link &&
           perf_event_is_alive(program->samplers[i].fd);
}

/* Starts sampling on the CPUs that were online at kernel_program_open; skips those that are offline
 * by now. */
static enum err_code start_cpus(struct kernel_program *program, struct err *err)
{
    for (uint32_t i = 0; i < program->cpu_count; i++) {
        const enum err_code code = kernel_program_start_cpu(program, program->cpus[i], err);
        if (code && code != ERR_NOT_FOUND)
            return code;
    }
    return ERR_NONE;
}

enum err_code kernel_program_start(struct kernel_program *program, struct err *err)
{
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !code && i < PROCESS_PROGRAM_COUNT; i++)
        code = attach_to_all_cpus(program, process_programs[i], err);
    if (!code && program->options.off_cpu_fraction > 0)
        code = attach_to_all_cpus(program, KERNEL_PROGRAM_AT_SWITCH, err);
    if (!code)
        code = start_cpus(program, err);
    if (code)
        kernel_program_stop(program);
    return code;
}

void kernel_program_stop(struct kernel_program *program)
{
    while (program->sampler_count)
        bpf_link__destroy(program->samplers[--program->sampler_count].link);
    while (program->link_count)
        bpf_link__destroy(program->links[--program->link_count]);
}
