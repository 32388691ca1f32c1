#include "agent/kernel/kernel_program.h"

#include "agent/kernel/cpu_list.h"
#include "agent/kernel/event_opener.h"
#include "agent/kernel/kernel_features.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/unwind_memory.h"
#include "bpf/shared.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
    SHARD_WINDOW_BYTES = 256 << 10, /* a multiple of every page size */
    FIXED_MAP_ENTRIES = 16384, /* entries of each of the two preallocated maps, 3 MB together */
};

extern const uint8_t bpf_cpu_start[], bpf_cpu_end[];
extern const uint8_t bpf_cpu_bounded_start[], bpf_cpu_bounded_end[];

static const char *const process_programs[] = {"follow_fork", "forget_program", "forget_process"};
enum { PROCESS_PROGRAM_COUNT = sizeof(process_programs) / sizeof(*process_programs) };
static const char switch_program[] = "note_switch";

/* The window through which shards are written, one piece of one shard at a time. It stays mapped
 * until another piece is written. Whole shards would be most of the agent's resident memory. */
struct shard_window {
    uint8_t *bytes; /* NULL: none is mapped */
    uint32_t shard;
    uint32_t offset; /* a multiple of SHARD_WINDOW_BYTES */
};

/* The perf event of a CPU with the program attached to it. */
struct cpu_sampler {
    uint32_t cpu;
    int fd;                /* owned by link */
    struct bpf_link *link; /* NULL: there is none at present */
};

struct kernel_program {
    struct arena *arena;
    struct kernel_program_options options;
    struct kernel_features features;
    struct bpf_object *object;
    struct ring_buffer *ring;
    uint32_t *cpus;
    uint32_t cpu_count;
    struct cpu_sampler *samplers;
    uint32_t sampler_count;
    uint32_t sampler_capacity;
    struct bpf_link *links[PROCESS_PROGRAM_COUNT + 1]; /* of the programs without a CPU */
    uint32_t link_count;
    int targets_fd;
    int processes_fd;
    struct unwind_rule *rules;   /* mapped memory of the map unwind_rules */
    struct unwind_chunk *chunks; /* mapped memory of the map unwind_chunks */
    struct shard_window window;
    int shard_fds[UNWIND_SHARD_COUNT];   /* -1: there is no such shard */
    uint8_t *shards[UNWIND_SHARD_COUNT]; /* NULL: not mapped for reading */
    uint32_t tally_phase;
    struct kernel_program_counts received; /* only its counts of samples and frames are used */
    int bpf_loop_error; /* errno with which the program with bpf_loop was refused; 0: it was not */
};

/* ---- messages ---- */

/* Drops the messages of libbpf: errors are reported once, by err. */
static int discard_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level, (void)format, (void)arguments;
    return 0;
}

static enum err_code set_error(int error, const char *what, struct err *err)
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

/* ---- loading ---- */

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

static bool uses_loop(const struct kernel_program *program)
{
    return kernel_features_loop(&program->features) && !program->options.has_bounded_loops &&
           !program->bpf_loop_error;
}

enum { LOAD_TRIES = 20 };

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
    /* A BPF program wakes the agent once it has written so many bytes on a CPU since it last did.
     * Each CPU counts twice, for ticks and for thread switches, so the ring is at most half full.
     */
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
    const size_t count = sizeof(constants) / sizeof(*constants) - (uses_loop(program) ? 1 : 0);
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
    return error ? set_error(error, "setting the kernel program's constants", err) : ERR_NONE;
}

static const char *const tally_maps[] = {"tallies_even", "tallies_odd"};

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
    struct bpf_program *part = bpf_object__find_program_by_name(program->object, switch_program);
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
        struct bpf_map *map = bpf_object__find_map_by_name(program->object, tally_maps[phase]);
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
    return error ? set_error(error, "preparing the kernel program", err)
                 : set_constants(program, ring_bytes, err);
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

static int map_fd(const struct kernel_program *program, const char *name)
{
    return bpf_map__fd(bpf_object__find_map_by_name(program->object, name));
}

enum {
    RULES_BYTES = (UNWIND_RULE_COUNT + 1) * sizeof(struct unwind_rule),
    CHUNKS_BYTES = UNWIND_CHUNK_COUNT * sizeof(struct unwind_chunk),
};

static void *map_memory(int fd, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_window(struct kernel_program *program)
{
    if (program->window.bytes)
        munmap(program->window.bytes, SHARD_WINDOW_BYTES);
    program->window.bytes = NULL;
}

static void unmap_unwind_tables(struct kernel_program *program)
{
    if (program->rules)
        munmap(program->rules, RULES_BYTES);
    if (program->chunks)
        munmap(program->chunks, CHUNKS_BYTES);
    kernel_program_unmap_shards(program);
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        os_close(program->shard_fds[i]);
}

static enum err_code map_unwind_tables(struct kernel_program *program, struct err *err)
{
    program->rules = map_memory(map_fd(program, "unwind_rules"), RULES_BYTES);
    program->chunks = map_memory(map_fd(program, "unwind_chunks"), CHUNKS_BYTES);
    return program->rules && program->chunks ? ERR_NONE
                                             : set_error(errno, "mapping the unwind tables", err);
}

static bool create_shard(void *context, uint32_t index)
{
    struct kernel_program *program = context;
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
    const int fd =
        bpf_map_create(BPF_MAP_TYPE_ARRAY, "shard", sizeof(index), UNWIND_SHARD_BYTES, 1, &options);
    if (fd < 0 ||
        bpf_map_update_elem(map_fd(program, "unwind_shards"), &index, &fd, BPF_ANY) != 0) {
        os_close(fd);
        return false;
    }
    program->shard_fds[index] = fd;
    return true;
}

static void unmap_shard(struct kernel_program *program, uint32_t index)
{
    if (program->shards[index])
        munmap(program->shards[index], UNWIND_SHARD_BYTES);
    program->shards[index] = NULL;
}

/* The kernel frees the shard once no BPF program reads it any more. */
static void destroy_shard(void *context, uint32_t index)
{
    struct kernel_program *program = context;
    if (program->window.bytes && program->window.shard == index)
        unmap_window(program);
    unmap_shard(program, index);
    (void)bpf_map_delete_elem(map_fd(program, "unwind_shards"), &index);
    os_close(program->shard_fds[index]);
    program->shard_fds[index] = -1;
}

static bool map_window(struct kernel_program *program, uint32_t shard, uint32_t offset)
{
    struct shard_window *window = &program->window;
    if (window->bytes && window->shard == shard && window->offset == offset)
        return true;
    unmap_window(program);
    void *memory = mmap(NULL, SHARD_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                        program->shard_fds[shard], (off_t)offset);
    if (memory == MAP_FAILED)
        return false;
    *window = (struct shard_window){.bytes = memory, .shard = shard, .offset = offset};
    return true;
}

static bool write_shard(void *context, uint32_t index, uint32_t offset, const void *bytes,
                        size_t size)
{
    struct kernel_program *program = context;
    const uint8_t *from = bytes;
    while (size) {
        const uint32_t within = offset % SHARD_WINDOW_BYTES;
        const size_t space = SHARD_WINDOW_BYTES - within, part = size < space ? size : space;
        if (!map_window(program, index, offset - within))
            return false;
        memcpy(program->window.bytes + within, from, part);
        from += part;
        offset += (uint32_t)part;
        size -= part;
    }
    return true;
}

void kernel_program_unwind_memory(struct kernel_program *program, struct unwind_memory *ret_memory)
{
    *ret_memory = (struct unwind_memory){.rules = program->rules,
                                         .chunks = program->chunks,
                                         .shard_create = create_shard,
                                         .shard_destroy = destroy_shard,
                                         .shard_write = write_shard,
                                         .context = program,
                                         .shard_limit = UNWIND_SHARD_COUNT};
}

static const uint8_t *read_shard(void *context, uint32_t index)
{
    struct kernel_program *program = context;
    if (index >= UNWIND_SHARD_COUNT || program->shard_fds[index] < 0)
        return NULL;
    if (!program->shards[index]) {
        void *memory =
            mmap(NULL, UNWIND_SHARD_BYTES, PROT_READ, MAP_SHARED, program->shard_fds[index], 0);
        program->shards[index] = memory == MAP_FAILED ? NULL : memory;
    }
    return program->shards[index];
}

void kernel_program_tables(struct kernel_program *program, struct unwind_memory_reader *ret_tables)
{
    *ret_tables = (struct unwind_memory_reader){.rules = program->rules,
                                                .chunks = program->chunks,
                                                .shard = read_shard,
                                                .context = program};
}

void kernel_program_unmap_shards(struct kernel_program *program)
{
    unmap_window(program);
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        unmap_shard(program, i);
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

/* Empties the map of a phase before the phase begins again. A BPF program that was delayed may have
 * added keys to the map after the agent had read it. The first samples of these keys are in an
 * earlier window, so counts under the keys would have no stack. */
static void drop_late_tallies(const struct kernel_program *program, uint32_t phase)
{
    const int fd = map_fd(program, tally_maps[phase]);
    uint64_t key;
    while (bpf_map_get_next_key(fd, NULL, &key) == 0 && bpf_map_delete_elem(fd, &key) == 0)
        ;
}

uint32_t kernel_program_switch_tallies(struct kernel_program *program)
{
    const uint32_t zero = 0, ended = program->tally_phase;
    program->tally_phase = ended ^ 1;
    drop_late_tallies(program, program->tally_phase);
    (void)bpf_map_update_elem(map_fd(program, "tally_phase"), &zero, &program->tally_phase,
                              BPF_ANY);
    return ended;
}

void kernel_program_take_tallies(struct kernel_program *program, uint32_t phase,
                                 void (*take)(void *context, uint64_t key,
                                              const struct sample_tally *tally),
                                 void *context)
{
    const int fd = map_fd(program, tally_maps[phase]);
    uint64_t key, next;
    struct sample_tally tally;
    bool has_key = bpf_map_get_next_key(fd, NULL, &key) == 0;
    /* Each next key is read before its predecessor is deleted: after a deleted key the kernel would
     * scan all buckets from the first on. A BPF program whose record was lost may still delete its
     * key, so ENOENT is no error. */
    while (has_key) {
        has_key = bpf_map_get_next_key(fd, &key, &next) == 0;
        if (bpf_map_lookup_elem(fd, &key, &tally) == 0 && tally.samples)
            take(context, key, &tally);
        if (bpf_map_delete_elem(fd, &key) && errno != ENOENT)
            break;
        key = next;
    }
}

/* *ret_error: the negative errno with which the kernel refused to load the programs; 0: it did not.
 * A refusal is no error of this function, which returns ERR_NONE. */
static enum err_code load_object(struct kernel_program *program, int *ret_error, struct err *err)
{
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "perfolio");
    const uint8_t *begin = uses_loop(program) ? bpf_cpu_start : bpf_cpu_bounded_start;
    const uint8_t *end = uses_loop(program) ? bpf_cpu_end : bpf_cpu_bounded_end;
    program->object = bpf_object__open_mem(begin, (size_t)(end - begin), &options);
    if (!program->object)
        return set_error(errno, "opening the kernel program", err);
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

/* Loads the program with bpf_loop, or the bounded one if the verifier refuses that: different
 * versions of Linux accept different programs. */
static enum err_code load_either(struct kernel_program *program, struct err *err)
{
    int error = 0;
    enum err_code code = load_with_retries(program, &error, err);
    if (!code && is_refusal(error) && uses_loop(program)) {
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
    return code || !error ? code : set_error(error, "loading the kernel program", err);
}

static enum err_code load_program(struct kernel_program *program, struct err *err)
{
    enum err_code code = load_either(program, err);
    if (code)
        return code;
    program->targets_fd = map_fd(program, "targets");
    program->processes_fd = map_fd(program, "processes");
    code = map_unwind_tables(program, err);
    if (code)
        return code;
    program->ring = ring_buffer__new(map_fd(program, "samples"), receive_sample, program, NULL);
    return program->ring ? ERR_NONE : set_error(errno, "mapping the ring of samples", err);
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
    unmap_unwind_tables(program);
    bpf_object__close(program->object);
    arena_destroy(program->arena);
    mem_free(program->samplers);
    mem_free(program);
}

/* ---- sampling ---- */

static enum err_code attach_program(struct kernel_program *program, const char *name, int event_fd,
                                    struct bpf_link **ret_link, struct err *err)
{
    struct bpf_program *part = bpf_object__find_program_by_name(program->object, name);
    struct bpf_link *link =
        event_fd >= 0 ? bpf_program__attach_perf_event(part, event_fd) : bpf_program__attach(part);
    if (!link)
        return set_error(errno, "attaching the kernel program", err);
    *ret_link = link;
    return ERR_NONE;
}

/* Attaches a program that runs on all CPUs, also on those that come online later. */
static enum err_code attach_everywhere(struct kernel_program *program, const char *name,
                                       struct err *err)
{
    enum err_code code =
        attach_program(program, name, -1, &program->links[program->link_count], err);
    program->link_count += !code;
    return code;
}

/* The error for an event that does not open, such as a counter that a virtual machine does not
 * have. */
static enum err_code fail_event(enum event_kind kind, struct err *err)
{
    const struct event_facts *facts = event_facts(kind);
    if (facts->is_hardware && (errno == ENOENT || errno == EOPNOTSUPP || errno == EINVAL))
        return err_set(err, ERR_UNSUPPORTED,
                       "this host cannot count %s: its processor has no such counter, or it is a "
                       "virtual machine without access to it; use cpu-clock, page-faults or "
                       "context-switches, which every host can count",
                       facts->name);
    return set_error(errno, "opening a perf event", err);
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

/* Starts sampling on the CPUs that were listed and are still online. */
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
        code = attach_everywhere(program, process_programs[i], err);
    if (!code && program->options.off_cpu_fraction > 0)
        code = attach_everywhere(program, switch_program, err);
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
    if (bpf_map_lookup_elem(map_fd(program, "counters"), &zero, each))
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

bool kernel_program_has_loop(const struct kernel_program *program)
{
    return uses_loop(program);
}

int kernel_program_loop_error(const struct kernel_program *program)
{
    return program->bpf_loop_error;
}

uint32_t kernel_program_cpus(const struct kernel_program *program)
{
    return program->cpu_count;
}
