#include "agent/kernel/kernel_program_internal.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RING_BYTES_MIN = 256 << 10,
    RING_BYTES_MAX = 64 << 20,
    SAMPLE_BYTES_EXPECTED = 512, /* head and 50 frames */
    SWITCHES_PER_S = 12000,      /* expected thread switches of a CPU, each a possible interval */
    RING_SECONDS = 2, /* the ring holds the samples of this time when all CPUs are busy */
    FIRST_PID_NAMESPACE = 0xEFFFFFFC, /* PROC_PID_INIT_INO of the kernel */
    KERNEL_STACK_BYTES_MIN = 16 << 10,
    FIXED_MAP_ENTRIES = 16384, /* entries of each of the two preallocated maps, 3 MB together */
    LOAD_TRIES = 20,
};

extern const uint8_t bpf_cpu_start[], bpf_cpu_end[];
extern const uint8_t bpf_cpu_bounded_start[], bpf_cpu_bounded_end[];

const char *const kernel_program_tally_maps[2] = {"tallies_even", "tallies_odd"};

enum err_code kernel_program_fail(int error, const char *what, struct err *err)
{
    errno = error < 0 ? -error : error;
    if (errno == EPERM || errno == EACCES)
        return err_set_errno(err, ERR_FORBIDDEN,
                             "%s: run as root, or grant CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and "
                             "CAP_SYSLOG",
                             what);
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL || errno == ENOENT)
        return err_set_errno(err, ERR_UNSUPPORTED,
                             "%s: this kernel does not support it; use Linux 5.10 or later", what);
    return err_set_errno(err, ERR_INTERNAL, "%s", what);
}

int kernel_program_map(const struct kernel_program *program, const char *name)
{
    return bpf_map__fd(bpf_object__find_map_by_name(program->object, name));
}

bool kernel_program_has_loop(const struct kernel_program *program)
{
    return kernel_features_loop(&program->features) && !program->options.has_bounded_loops &&
           !program->bpf_loop_error;
}

/* ---- configuration ---- */

static uint32_t choose_ring_bytes(const struct kernel_program *program)
{
    const struct kernel_program_options *options = &program->options;
    const uint64_t records =
        options->frequency_hz + (uint64_t)(options->off_cpu_fraction * SWITCHES_PER_S);
    const uint64_t wanted = options->ring_bytes ? options->ring_bytes
                                                : (uint64_t)program->cpu_count * records *
                                                      SAMPLE_BYTES_EXPECTED * RING_SECONDS;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = options->ring_bytes ? page : RING_BYTES_MIN;
    while (bytes < wanted && bytes < RING_BYTES_MAX)
        bytes *= 2;
    return (uint32_t)bytes;
}

/* The inode of our PID namespace; 0: it is the initial one, whose numbers are the kernel's own. */
static uint32_t own_namespace(void)
{
    struct stat status;
    if (stat("/proc/self/ns/pid", &status) || status.st_ino == FIRST_PID_NAMESPACE)
        return 0;
    return (uint32_t)status.st_ino;
}

/* Finds the offset of a constant in the section .rodata of the program, by the program's BTF.
 * False: there is no constant of that name and size. */
static bool find_constant(const struct kernel_program *program, const char *name, size_t size,
                          size_t *ret_offset)
{
    const struct btf *types = bpf_object__btf(program->object);
    const int section_id = types ? btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC) : -1;
    if (section_id < 0)
        return false;
    const struct btf_type *section = btf__type_by_id(types, (uint32_t)section_id);
    const struct btf_var_secinfo *variables = btf_var_secinfos(section);
    for (uint32_t i = 0; i < btf_vlen(section); i++) {
        const struct btf_type *variable = btf__type_by_id(types, variables[i].type);
        if (strcmp(btf__name_by_offset(types, variable->name_off), name) == 0) {
            *ret_offset = variables[i].offset;
            return variables[i].size == size;
        }
    }
    return false;
}

/* The size of a kernel stack (THREAD_SIZE): 16 KiB on x86-64 and arm64, or a page if that is more.
 * Kernels with KASAN have twice that size; on these, samples taken in the kernel have no user
 * frames, and their `stop` (enum unwind_stop) states why. */
static uint64_t kernel_stack_bytes(void)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return page > KERNEL_STACK_BYTES_MIN ? page : KERNEL_STACK_BYTES_MIN;
}

static enum err_code set_constants(const struct kernel_program *program, uint32_t ring_bytes,
                                   struct err *err)
{
    arena_auto arena = arena_create();
    const uint32_t agent_namespace = own_namespace();
    const uint8_t has_targets = program->options.has_targets;
    const uint8_t has_tallies = program->options.has_tallies;
    const uint8_t unwind_options = program->options.has_no_tables ? UNWIND_OPTION_FP_ONLY : 0;
    /* A BPF program wakes the agent once it has written this many bytes on its CPU since it last
     * woke the agent. Each CPU has one counter for ticks and one for thread switches, so the ring
     * is at most half full. */
    const uint64_t wake_bytes = ring_bytes / 2 / program->cpu_count / SCRATCH_COUNT;
    const uint32_t off_cpu_threshold = (uint32_t)(program->options.off_cpu_fraction * UINT32_MAX);
    const uint32_t subsample_hz =
        event_kind_is_subsampled(program->options.event) ? program->options.frequency_hz : 0;
    const uint64_t stack_bytes = kernel_stack_bytes();
    const struct {
        const char *name;
        const void *value;
        size_t size;
    } constants[] = {
        {"agent_namespace", &agent_namespace, sizeof(agent_namespace)},
        {"has_targets", &has_targets, sizeof(has_targets)},
        {"unwind_options", &unwind_options, sizeof(unwind_options)},
        {"subsample_hz", &subsample_hz, sizeof(subsample_hz)},
        {"off_cpu_threshold", &off_cpu_threshold, sizeof(off_cpu_threshold)},
        {"has_tallies", &has_tallies, sizeof(has_tallies)},
        {"wake_bytes", &wake_bytes, sizeof(wake_bytes)},
        /* must be the last row: only the bounded program has this constant */
        {"kernel_stack_bytes", &stack_bytes, sizeof(stack_bytes)},
    };
    const size_t count =
        sizeof(constants) / sizeof(*constants) - (kernel_program_has_loop(program) ? 1 : 0);
    struct bpf_map *map = bpf_object__find_map_by_name(program->object, ".rodata");
    size_t size = 0, offset;
    const void *initial = map ? bpf_map__initial_value(map, &size) : NULL;
    if (!initial)
        return err_set(err, ERR_INTERNAL, "the kernel program has no constants");
    uint8_t *memory = arena_new(arena, uint8_t, size);
    memcpy(memory, initial, size);
    for (size_t i = 0; i < count; i++) {
        if (!find_constant(program, constants[i].name, constants[i].size, &offset) ||
            constants[i].size > size || offset > size - constants[i].size)
            return err_set(err, ERR_INTERNAL, "the kernel program has no constant %s of %zu bytes",
                           constants[i].name, constants[i].size);
        memcpy(memory + offset, constants[i].value, constants[i].size);
    }
    const int error = bpf_map__set_initial_value(map, memory, size);
    return error ? kernel_program_fail(error, "setting the kernel program's constants", err)
                 : ERR_NONE;
}

/* Before Linux 6.1 programs at perf events may only use preallocated hash maps. */
static int preallocate_maps(const struct kernel_program *program)
{
    static const char *const names[] = {"processes", "targets"};
    int error = 0;
    for (size_t i = 0; !error && i < sizeof(names) / sizeof(*names); i++) {
        struct bpf_map *map = bpf_object__find_map_by_name(program->object, names[i]);
        error = map ? bpf_map__set_map_flags(map, 0) : -ENOENT;
        if (!error)
            error = bpf_map__set_max_entries(map, FIXED_MAP_ENTRIES);
    }
    return error;
}

/* Loads the program for thread switches only if off-CPU profiling is on. */
static int prepare_off_cpu(const struct kernel_program *program)
{
    const bool has_off_cpu = program->options.off_cpu_fraction > 0;
    struct bpf_program *part =
        bpf_object__find_program_by_name(program->object, KERNEL_PROGRAM_AT_SWITCH);
    struct bpf_map *off_cpu = bpf_object__find_map_by_name(program->object, "open_intervals");
    if (!part || !off_cpu)
        return -ENOENT;
    const int error = bpf_program__set_autoload(part, has_off_cpu);
    return error || !has_off_cpu ? error : bpf_map__set_max_entries(off_cpu, SAMPLE_INTERVALS_MAX);
}

static int prepare_tallies(const struct kernel_program *program)
{
    int error = 0;
    for (uint32_t phase = 0; !error && phase < 2 && program->options.has_tallies; phase++) {
        struct bpf_map *map =
            bpf_object__find_map_by_name(program->object, kernel_program_tally_maps[phase]);
        error = map ? bpf_map__set_max_entries(map, SAMPLE_TALLIES_MAX) : -ENOENT;
    }
    return error;
}

static enum err_code prepare_object(const struct kernel_program *program, struct err *err)
{
    const uint32_t ring_bytes = choose_ring_bytes(program);
    struct bpf_map *samples = bpf_object__find_map_by_name(program->object, "samples");
    if (!samples)
        return err_set(err, ERR_INTERNAL, "the kernel program has no ring of samples");
    int error = bpf_map__set_max_entries(samples, ring_bytes);
    if (!error && !program->features.has_unallocated_maps)
        error = preallocate_maps(program);
    if (!error)
        error = prepare_off_cpu(program);
    if (!error)
        error = prepare_tallies(program);
    return error ? kernel_program_fail(error, "preparing the kernel program", err)
                 : set_constants(program, ring_bytes, err);
}

/* ---- loading ---- */

/* *ret_error: the negative errno with which the kernel refused to load the programs; 0: it did not.
 * A refusal is no error of this function, which returns ERR_NONE. */
static enum err_code load_object(struct kernel_program *program, int *ret_error, struct err *err)
{
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "perfolio");
    const uint8_t *begin = kernel_program_has_loop(program) ? bpf_cpu_start : bpf_cpu_bounded_start;
    const uint8_t *end = kernel_program_has_loop(program) ? bpf_cpu_end : bpf_cpu_bounded_end;
    program->object = bpf_object__open_mem(begin, (size_t)(end - begin), &options);
    if (!program->object)
        return kernel_program_fail(errno, "opening the kernel program", err);
    enum err_code code = prepare_object(program, err);
    if (code)
        return code;
    *ret_error = bpf_object__load(program->object);
    return ERR_NONE;
}

static void close_object(struct kernel_program *program)
{
    bpf_object__close(program->object);
    program->object = NULL;
}

/* Loads again if a signal interrupted the verifier (EAGAIN). libbpf tries a few times itself, which
 * does not suffice for a process that is stopped and continued all the time. */
static enum err_code load_with_retries(struct kernel_program *program, int *ret_error,
                                       struct err *err)
{
    enum err_code code = load_object(program, ret_error, err);
    for (int i = 0; i < LOAD_TRIES && !code && *ret_error == -EAGAIN; i++) {
        close_object(program);
        *ret_error = 0;
        code = load_object(program, ret_error, err);
    }
    return code;
}

/* Whether the verifier refused the program: it gave up (E2BIG, ENOSPC) or took an instruction for a
 * forbidden one (EACCES, EINVAL). EPERM is a missing capability instead. */
static bool is_refusal(int error)
{
    return error == -E2BIG || error == -EACCES || error == -EINVAL || error == -ENOSPC;
}

enum err_code kernel_program_load(struct kernel_program *program, struct err *err)
{
    int error = 0;
    enum err_code code = load_with_retries(program, &error, err);
    if (!code && is_refusal(error) && kernel_program_has_loop(program)) {
        close_object(program);
        program->bpf_loop_error = -error;
        error = 0;
        code = load_with_retries(program, &error, err);
    }
    /* Chooses the message: a feature that the kernel lacks, else the verifier, else the errno.
     * Without the right to load programs (EPERM) all features seem to be missing. */
    if (!code && error && error != -EPERM)
        code = kernel_features_check(&program->features, err);
    if (!code && error == -EACCES && program->features.has_ring)
        return err_set(err, ERR_UNSUPPORTED, "this kernel's verifier refuses the program");
    return code || !error ? code : kernel_program_fail(error, "loading the kernel program", err);
}
