#include "agent/kernel/kernel_program.h"

#include "agent/kernel/cpu_list.h"
#include "agent/kernel/kernel_program_internal.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* Drops the messages of libbpf: errors are reported once, by err. */
static int discard_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level, (void)format, (void)arguments;
    return 0;
}

/* Before Linux 5.11 maps count against RLIMIT_MEMLOCK, which is small. */
static void lift_memory_limit(void)
{
    const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
}

static int receive_sample(void *context, void *data, size_t size)
{
    struct kernel_program *program = context;
    const struct sample_event *event = data;
    if (size < SAMPLE_EVENT_HEAD_BYTES || size < sample_event_bytes(event))
        return 0;
    struct kernel_program_counts *received = &program->received;
    received->samples += event->kind == SAMPLE_TICK;
    received->user_frames += event->user_count;
    received->kernel_frames += event->kernel_count;
    received->interpreted_frames += event->interpreted_count;
    program->options.on_sample(program->options.context, event);
    return 0;
}

bool kernel_program_put_process(struct kernel_program *program, uint32_t process_id,
                                uint64_t started_ns, const struct unwind_mapping_list *list,
                                const struct interpreter_process *interpreter)
{
    const struct sample_process process = {.started_ns = started_ns,
                                           .published_ns = (uint64_t)clock_monotonic_ns(),
                                           .list = *list,
                                           .interpreter = *interpreter};
    return bpf_map_update_elem(program->processes_fd, &process_id, &process, BPF_ANY) == 0;
}

void kernel_program_remove_process(struct kernel_program *program, uint32_t process_id,
                                   const struct unwind_mapping_list *list)
{
    struct sample_process process;
    if (bpf_map_lookup_elem(program->processes_fd, &process_id, &process) == 0 &&
        memcmp(&process.list, list, sizeof(*list)) == 0)
        (void)bpf_map_delete_elem(program->processes_fd, &process_id);
}

/* Empties the map of a phase (bpf/tally.bpf.h) before it is used again. A delayed BPF program may
 * have added keys after the agent had read the map. Such a key is useless: the sample that was sent
 * with it, which has the stack, belongs to an earlier window. */
static void drop_late_tallies(const struct kernel_program *program, uint32_t phase)
{
    const int fd = kernel_program_map(program, kernel_program_tally_maps[phase]);
    uint64_t key;
    while (bpf_map_get_next_key(fd, NULL, &key) == 0 && bpf_map_delete_elem(fd, &key) == 0)
        ;
}

uint32_t kernel_program_switch_tallies(struct kernel_program *program)
{
    const uint32_t zero = 0, ended = program->tally_phase;
    program->tally_phase = ended ^ 1;
    drop_late_tallies(program, program->tally_phase);
    (void)bpf_map_update_elem(kernel_program_map(program, "tally_phase"), &zero,
                              &program->tally_phase, BPF_ANY);
    return ended;
}

void kernel_program_take_tallies(struct kernel_program *program, uint32_t phase,
                                 void (*take)(void *context, uint64_t key,
                                              const struct sample_tally *tally),
                                 void *context)
{
    const int fd = kernel_program_map(program, kernel_program_tally_maps[phase]);
    uint64_t key, next;
    struct sample_tally tally;
    bool has_key = bpf_map_get_next_key(fd, NULL, &key) == 0;
    /* Each next key is read before its predecessor is deleted: after a deleted key the kernel would
     * scan all buckets from the first on. ENOENT is no error: a BPF program deletes a key itself if
     * the ring had no space for its first sample (tally_forget). */
    while (has_key) {
        has_key = bpf_map_get_next_key(fd, &key, &next) == 0;
        if (bpf_map_lookup_elem(fd, &key, &tally) == 0 && tally.samples)
            take(context, key, &tally);
        if (bpf_map_delete_elem(fd, &key) && errno != ENOENT)
            break;
        key = next;
    }
}

static enum err_code load_program(struct kernel_program *program, struct err *err)
{
    enum err_code code = kernel_program_load(program, err);
    if (code)
        return code;
    program->targets_fd = kernel_program_map(program, "targets");
    program->processes_fd = kernel_program_map(program, "processes");
    code = kernel_program_open_memory(program, err);
    if (code)
        return code;
    program->ring =
        ring_buffer__new(kernel_program_map(program, "samples"), receive_sample, program, NULL);
    return program->ring ? ERR_NONE
                         : kernel_program_fail(errno, "mapping the ring of samples", err);
}

enum err_code kernel_program_open(const struct kernel_program_options *options,
                                  struct kernel_program **ret_program, struct err *err)
{
    struct kernel_program *program = mem_new(struct kernel_program, 1);
    program->arena = arena_create();
    program->options = *options;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        program->shard_fds[i] = -1;
    libbpf_set_print(discard_message);
    lift_memory_limit();
    kernel_features_find(&program->features);
    enum err_code code = cpu_list_online(program->arena, &program->cpus, &program->cpu_count, err);
    if (!code)
        code = load_program(program, err);
    if (code) {
        kernel_program_close(program);
        return code;
    }
    *ret_program = program;
    return ERR_NONE;
}

void kernel_program_close(struct kernel_program *program)
{
    if (!program)
        return;
    kernel_program_stop(program);
    ring_buffer__free(program->ring);
    kernel_program_close_memory(program);
    bpf_object__close(program->object);
    arena_destroy(program->arena);
    mem_free(program->samplers);
    mem_free(program);
}

enum err_code kernel_program_add_target(struct kernel_program *program, uint32_t process_id,
                                        bool *ret_is_new, struct err *err)
{
    const uint8_t yes = 1;
    const bool has_failed =
        bpf_map_update_elem(program->targets_fd, &process_id, &yes, BPF_NOEXIST);
    if (has_failed && errno == E2BIG)
        return err_set(
            err, ERR_TOO_LARGE, "more than %u processes",
            bpf_map__max_entries(bpf_object__find_map_by_name(program->object, "targets")));
    if (has_failed && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "adding a process to the kernel program");
    *ret_is_new = !has_failed;
    return ERR_NONE;
}

int kernel_program_fd(const struct kernel_program *program)
{
    return ring_buffer__epoll_fd(program->ring);
}

void kernel_program_read(struct kernel_program *program)
{
    (void)ring_buffer__consume(program->ring);
}

void kernel_program_count(const struct kernel_program *program,
                          struct kernel_program_counts *ret_counts)
{
    arena_auto arena = arena_create();
    const int possible = libbpf_num_possible_cpus();
    const uint32_t zero = 0;
    *ret_counts = program->received;
    if (possible <= 0)
        return;
    struct sample_counters *each = arena_new(arena, struct sample_counters, (size_t)possible);
    if (bpf_map_lookup_elem(kernel_program_map(program, "counters"), &zero, each))
        return;
    for (int i = 0; i < possible; i++) {
        ret_counts->samples += each[i].tallied + each[i].lost_ticks;
        ret_counts->tallied += each[i].tallied;
        ret_counts->lost += each[i].lost;
        ret_counts->off_cpu += each[i].off_cpu;
        ret_counts->refused_off_cpu += each[i].refused_off_cpu;
        ret_counts->foreign += each[i].foreign;
    }
}

int kernel_program_loop_error(const struct kernel_program *program)
{
    return program->bpf_loop_error;
}
