/*
 * Records registers and stacks of a program, and unwinds each with the agent's unwinder and with
 * libdwfl:
 *
 *   unwind_replay SAMPLES EXPECTED PROGRAM [ARGUMENT...]
 *
 * EXPECTED: names of functions from the leaf to the root, separated by commas. A sample is as
 * expected if its stack contains them in this order; other frames may be between them. After
 * SAMPLES samples or 120 s, kills the program and prints one line of numbers, before it the first
 * three stacks that differ. The exit status is 77 if the kernel refuses to record.
 */
#include "agent/unwind/unwind_maps.h"
#include "agent/unwind/unwind_names.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <asm/perf_regs.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_BYTES = 8 << 20,
    STACK_BYTES = 32 << 10,
    CPUS_MAX = 64,
    MAPPINGS_MAX = 1024,
    TABLES_MAX = 256,
    FRAMES_MAX = 1024,
    EXIT_SKIPPED = 77,
    TIMEOUT_S = 120,
};

/* SP, FP and PC are DWARF's numbers of registers. perf_registers: perf's number of each of DWARF's
 * registers, and at PC that of the program counter. */
#ifdef __aarch64__
enum { REGISTERS = 33, DWARF_REGISTERS = 32, SP = 31, FP = 29, PC = 32 };
/* perf and DWARF have the same numbers. */
static const int perf_registers[REGISTERS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                              11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                              22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
#else
/* DWARF's registers 0 to 15, and 16, the column of the return address, which libdwfl takes as the
 * program counter. */
enum { REGISTERS = 17, DWARF_REGISTERS = 17, SP = 7, FP = 6, PC = 16 };
static const int perf_registers[REGISTERS] = {
    PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,  PERF_REG_X86_SI,
    PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,  PERF_REG_X86_R9,
    PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
    PERF_REG_X86_R15, PERF_REG_X86_IP};
#endif

struct sample {
    pid_t pid;
    pid_t tid;
    uint64_t registers[REGISTERS];
    const uint8_t *stack;
    uint64_t stack_bytes;
};

struct unwind_source {
    struct unwind_rule *rules;
    struct unwind_chunk *chunks;
    struct unwind_memo *memos;
    uint8_t *shards[UNWIND_SHARD_COUNT];
    const struct sample *sample;
};

static const __u8 *unwind_source_shard(struct unwind_source *source, __u32 shard)
{
    return shard < UNWIND_SHARD_COUNT ? source->shards[shard] : NULL;
}
static const struct unwind_rule *unwind_source_rule(struct unwind_source *source, __u32 rule)
{
    return &source->rules[rule % UNWIND_RULE_COUNT];
}
static struct unwind_memo *unwind_source_memo(struct unwind_source *source, __u32 memo)
{
    return &source->memos[memo];
}
static const struct unwind_chunk *unwind_source_chunk(struct unwind_source *source, __u32 chunk)
{
    return &source->chunks[chunk % UNWIND_CHUNK_COUNT];
}
static int unwind_source_read(struct unwind_source *source, void *to, __u32 size, __u64 address)
{
    const struct sample *sample = source->sample;
    uint64_t into = address - sample->registers[SP];
    if (into > sample->stack_bytes || size > sample->stack_bytes - into)
        return -1;
    memcpy(to, sample->stack + into, size);
    return 0;
}

#include "bpf/unwind_core.h"

/* Tables by path; files do not change during a run. */
struct known_table {
    char path[512];
    struct unwind_table_ref ref; /* chunk_count 0: no table */
};

struct frames {
    uint64_t address[FRAMES_MAX];
    uint32_t count;
};

struct replay {
    pid_t pid;
    struct unwind_source source;
    struct unwind_maps *maps;
    struct unwind_mapping_list list;
    struct known_table tables[TABLES_MAX];
    uint32_t table_count;
    Dwfl *dwfl;
    struct sample sample;
    bool is_stale; /* mappings have changed since they were read */
    char *expected;
    uint32_t wanted, samples, agreeing, complete, as_expected, dwfl_complete, cut;
    uint32_t differences;
    int ring_fds[CPUS_MAX];
    uint8_t *rings[CPUS_MAX];
    int ring_count;
};

static bool create_shard(void *context, uint32_t index)
{
    struct unwind_source *source = context;
    source->shards[index] = mem_alloc(UNWIND_SHARD_BYTES, 1);
    return true;
}

static bool write_shard(void *context, uint32_t index, uint32_t offset, const void *bytes,
                        size_t size)
{
    struct unwind_source *source = context;
    memcpy(source->shards[index] + offset, bytes, size);
    return true;
}

/* The vdso exists only in memory. */
static int open_mapped(pid_t pid, const char *path, uint64_t start, uint64_t end)
{
    if (strcmp(path, "[vdso]") != 0)
        return path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    int memory = open(name, O_RDONLY | O_CLOEXEC);
    int copy = memfd_create("vdso", MFD_CLOEXEC);
    uint8_t *bytes = mem_alloc(end - start, 1);
    ssize_t count = pread(memory, bytes, end - start, (off_t)start);
    if (count > 0 && write(copy, bytes, (size_t)count) != count)
        fprintf(stderr, "the vdso cannot be copied\n");
    mem_free(bytes);
    close(memory);
    return copy;
}

static struct known_table *table_of(struct replay *replay, const char *path, uint64_t start,
                                    uint64_t end)
{
    for (uint32_t i = 0; i < replay->table_count; i++) {
        if (strcmp(replay->tables[i].path, path) == 0)
            return &replay->tables[i];
    }
    if (replay->table_count == TABLES_MAX)
        abort();
    struct known_table *known = &replay->tables[replay->table_count++];
    struct unwind_table *table;
    struct err err;
    snprintf(known->path, sizeof known->path, "%s", path);
    int fd = open_mapped(replay->pid, path, start, end);
    if (fd >= 0 && unwind_table_build(fd, path, NULL, &table, &err) == ERR_NONE) {
        if (unwind_maps_add_table(replay->maps, table, &known->ref, &err))
            fprintf(stderr, "%s\n", err.message);
        unwind_table_destroy(table);
    }
    if (fd >= 0)
        close(fd);
    return known;
}

/* ELF address minus file offset of the executable segment that is mapped from this offset. */
static uint64_t segment_shift(const struct replay *replay, const char *path, uint64_t offset)
{
    struct elf_frames frames;
    struct err err;
    uint64_t shift = 0;
    int fd = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    (void)replay;
    if (fd >= 0 && elf_frames_open(fd, path, &frames, &err) == ERR_NONE) {
        for (uint32_t i = 0; i < frames.code_count; i++) {
            if (frames.code[i].offset + frames.code[i].bytes > offset) {
                shift = frames.code[i].address - frames.code[i].offset;
                break;
            }
        }
    }
    if (fd >= 0)
        close(fd);
    return shift;
}

static void read_mappings(struct replay *replay)
{
    char name[64], line[1024];
    static uint64_t starts[MAPPINGS_MAX];
    static struct unwind_mapping mappings[MAPPINGS_MAX];
    uint32_t count = 0;
    struct err err;
    snprintf(name, sizeof name, "/proc/%d/maps", replay->pid);
    FILE *maps = fopen(name, "re");
    while (maps && fgets(line, sizeof line, maps) && count < MAPPINGS_MAX) {
        uint64_t start, end, offset;
        char rights[8], path[512] = "";
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &start, &end,
                   rights, &offset, path) < 4 ||
            rights[2] != 'x' || strcmp(path, "[vsyscall]") == 0)
            continue;
        struct known_table *known = table_of(replay, path, start, end);
        starts[count] = start;
        mappings[count++] = (struct unwind_mapping){
            .end = end,
            .bias = start - offset - segment_shift(replay, path, offset) + known->ref.start,
            .first_chunk = known->ref.first_chunk,
            .chunk_count = known->ref.chunk_count};
    }
    if (maps)
        fclose(maps);
    unwind_maps_drop_mappings(replay->maps, 0, &replay->list, 0);
    unwind_maps_reclaim(replay->maps, INT64_MAX);
    if (unwind_maps_put_mappings(replay->maps, 0, 0, starts, mappings, count, &replay->list, &err))
        fprintf(stderr, "%s\n", err.message);
}

/* ---- libdwfl on a recorded stack ---- */

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
    struct replay *replay = context;
    (void)dwfl;
    if (*thread)
        return 0;
    *thread = replay;
    return replay->sample.tid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *context)
{
    struct replay *replay = context;
    (void)dwfl;
    replay->source.sample = &replay->sample;
    return unwind_source_read(&replay->source, result, sizeof *result, address) == 0;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    struct replay *replay = context;
    Dwarf_Word registers[DWARF_REGISTERS];
    for (int i = 0; i < DWARF_REGISTERS; i++)
        registers[i] = replay->sample.registers[i];
#ifdef __aarch64__
    dwfl_thread_state_register_pc(thread, replay->sample.registers[PC]);
#endif
    return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS, registers);
}

static int take_frame(Dwfl_Frame *frame, void *context)
{
    struct frames *frames = context;
    Dwarf_Addr pc;
    bool is_exact;
    if (frames->count == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &is_exact))
        return DWARF_CB_ABORT;
    frames->address[frames->count++] = pc - !is_exact;
    return DWARF_CB_OK;
}

static void open_dwfl(struct replay *replay)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo};
    static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
                                                           .memory_read = read_memory,
                                                           .set_initial_registers = set_registers};
    dwfl_end(replay->dwfl);
    replay->dwfl = dwfl_begin(&callbacks);
    dwfl_linux_proc_report(replay->dwfl, replay->pid);
    dwfl_report_end(replay->dwfl, NULL, NULL);
    if (!dwfl_attach_state(replay->dwfl, NULL, replay->pid, &thread_callbacks, replay))
        fprintf(stderr, "libdwfl: %s\n", dwfl_errmsg(-1));
}

/* ---- comparison ---- */

static enum unwind_stop unwind_sample(struct replay *replay, struct frames *frames)
{
    struct unwind_state state = {.pc = replay->sample.registers[PC],
                                 .sp = replay->sample.registers[SP],
                                 .fp = replay->sample.registers[FP]};
    enum unwind_stop stop = UNWIND_CONTINUE;
    memcpy(state.leaf, replay->sample.registers, sizeof state.leaf);
    replay->source.sample = &replay->sample;
    unwind_begin(&state, &replay->list, 0);
    for (frames->count = 0; !stop && frames->count < FRAMES_MAX;) {
        frames->address[frames->count++] = unwind_address(&state);
        stop = unwind_step(&replay->source, &state);
        if (!stop && state.was_signal)
            frames->address[frames->count - 1]++; /* a signal frame: no call before it */
    }
    return unwind_end(&state, stop, &frames->count);
}

static bool is_in_known_files(const struct replay *replay, const struct frames *frames)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        if (!dwfl_addrmodule(replay->dwfl, frames->address[i]))
            return false;
    }
    return true;
}

static const char *name_of(struct replay *replay, uint64_t address)
{
    Dwfl_Module *module = dwfl_addrmodule(replay->dwfl, address);
    const char *name = module ? dwfl_module_addrname(module, address) : NULL;
    return name ? name : "?";
}

static bool is_expected(struct replay *replay, const struct frames *frames)
{
    char *names = mem_strdup(replay->expected), *rest = names;
    const char *wanted = strsep(&rest, ",");
    for (uint32_t i = 0; i < frames->count && wanted; i++) {
        if (strcmp(name_of(replay, frames->address[i]), wanted) == 0)
            wanted = strsep(&rest, ",");
    }
    bool is_found = wanted == NULL;
    mem_free(names);
    return is_found;
}

static void print_difference(struct replay *replay, const struct frames *ours,
                             const struct frames *theirs, enum unwind_stop stop)
{
    uint32_t count = ours->count > theirs->count ? ours->count : theirs->count;
    if (replay->differences++ >= 3)
        return;
    printf("differs, unwinder stopped by %s:\n", unwind_stop_name(stop));
    for (uint32_t i = 0; i < count && i < 60; i++) {
        uint64_t left = i < ours->count ? ours->address[i] : 0;
        uint64_t right = i < theirs->count ? theirs->address[i] : 0;
        printf("  %16" PRIx64 " %-30s %16" PRIx64 " %s\n", left, left ? name_of(replay, left) : "-",
               right, right ? name_of(replay, right) : "-");
    }
}

static void replay_sample(struct replay *replay)
{
    static struct frames ours, theirs;
    if (replay->is_stale) {
        read_mappings(replay);
        open_dwfl(replay);
        replay->is_stale = false;
    }
    enum unwind_stop stop = unwind_sample(replay, &ours);
    if (!unwind_stop_is_complete(stop) || !is_in_known_files(replay, &ours)) {
        /* Mappings may change without a record (mprotect), or with a record in another processor's
         * ring. A stack with frames in a file that is not known yet can look complete, because
         * invalid frame pointers end at zero. */
        read_mappings(replay);
        open_dwfl(replay);
        stop = unwind_sample(replay, &ours);
    }
    theirs.count = 0;
    bool is_whole =
        dwfl_getthread_frames(replay->dwfl, replay->sample.tid, take_frame, &theirs) == 0;
    bool is_complete = unwind_stop_is_complete(stop);
    /* The copy of the stack is too short: both results are right as far as they go. */
    bool is_cut = stop == UNWIND_STOP_STACK_READ && ours.count == theirs.count;
    replay->samples++;
    replay->complete += is_complete;
    replay->dwfl_complete += is_whole;
    replay->cut += is_cut;
    replay->as_expected += is_expected(replay, &ours);
    if (ours.count == theirs.count &&
        memcmp(ours.address, theirs.address, ours.count * sizeof ours.address[0]) == 0)
        replay->agreeing++;
    else
        print_difference(replay, &ours, &theirs, stop);
}

/* ---- recording ---- */

static bool open_ring(struct replay *replay, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_freq = 1999,
        .freq = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_stack_user = STACK_BYTES,
        .exclude_kernel = 1,
        .inherit = 1,
        .mmap = 1,
        .disabled = 1,
        .enable_on_exec = 1,
    };
    for (int i = 0; i < REGISTERS; i++)
        attr.sample_regs_user |= 1ULL << perf_registers[i];
    int fd = (int)syscall(SYS_perf_event_open, &attr, replay->pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return false;
    void *ring = mmap(NULL, RING_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        return false;
    replay->ring_fds[replay->ring_count] = fd;
    replay->rings[replay->ring_count++] = ring;
    return true;
}

/* Values of the registers, in the order of their bits. */
static void take_registers(struct sample *sample, const uint64_t *values)
{
    uint64_t by_bit[64] = {0};
    uint64_t mask = 0;
    for (int i = 0; i < REGISTERS; i++)
        mask |= 1ULL << perf_registers[i];
    for (int bit = 0; bit < 64; bit++) {
        if (mask & 1ULL << bit)
            by_bit[bit] = *values++;
    }
    for (int i = 0; i < REGISTERS; i++)
        sample->registers[i] = by_bit[perf_registers[i]];
}

/* A sample has the fields of sample_type in open_ring: pid and tid in one word; ABI and registers;
 * the size of the copy of the stack, its bytes, and how many of them the kernel filled. */
static void take_record(struct replay *replay, const uint8_t *record)
{
    const struct perf_event_header *header = (const void *)record;
    const uint64_t *words = (const uint64_t *)(const void *)(record + sizeof *header);
    if (header->type == PERF_RECORD_MMAP)
        replay->is_stale = true;
    if (header->type != PERF_RECORD_SAMPLE)
        return;
    struct sample *sample = &replay->sample;
    sample->pid = (pid_t)(uint32_t)words[0];
    sample->tid = (pid_t)(words[0] >> 32);
    if (sample->pid != replay->pid || words[1] != PERF_SAMPLE_REGS_ABI_64)
        return;
    take_registers(sample, &words[2]);
    uint64_t size = words[2 + REGISTERS];
    sample->stack = (const uint8_t *)&words[3 + REGISTERS];
    memcpy(&sample->stack_bytes, sample->stack + size, sizeof sample->stack_bytes);
    if (sample->stack_bytes > size)
        return;
    if (replay->samples < replay->wanted)
        replay_sample(replay);
}

static void drain(struct replay *replay, uint8_t *ring)
{
    static uint8_t copy[1 << 16];
    struct perf_event_mmap_page *page = (void *)ring;
    const uint8_t *data = ring + 4096;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page->data_tail;
    while (tail < head) {
        struct perf_event_header header;
        for (size_t i = 0; i < sizeof header; i++)
            copy[i] = data[(tail + i) & (RING_BYTES - 1)];
        memcpy(&header, copy, sizeof header);
        for (size_t i = 0; i < header.size; i++)
            copy[i] = data[(tail + i) & (RING_BYTES - 1)];
        take_record(replay, copy);
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static void start(struct replay *replay, char **command)
{
    int gate[2];
    if (pipe2(gate, O_CLOEXEC) < 0)
        abort();
    replay->pid = fork();
    if (replay->pid == 0) {
        char byte;
        if (read(gate[0], &byte, 1) != 1)
            _exit(127);
        execvp(command[0], command);
        _exit(127);
    }
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++) {
        if (!open_ring(replay, cpu) && errno != ENODEV) {
            fprintf(stderr, "the kernel refuses to record: %s\n", strerror(errno));
            kill(replay->pid, SIGKILL);
            exit(EXIT_SKIPPED);
        }
    }
    if (write(gate[1], "", 1) != 1)
        abort();
    usleep(300000); /* after the dynamic loader, during which mappings change at every sample */
    for (int i = 0; i < replay->ring_count; i++) {
        struct perf_event_mmap_page *page = (void *)replay->rings[i];
        page->data_tail = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    }
}

int main(int argc, char **argv)
{
    static struct replay replay;
    if (argc < 4)
        return 2;
    replay.wanted = (uint32_t)atoi(argv[1]);
    replay.expected = argv[2];
    replay.source.rules = mem_new(struct unwind_rule, UNWIND_RULE_COUNT + 1);
    replay.source.chunks = mem_new(struct unwind_chunk, UNWIND_CHUNK_COUNT);
    replay.source.memos = mem_new(struct unwind_memo, UNWIND_MEMO_COUNT);
    replay.maps = unwind_maps_create(&(struct unwind_memory){.rules = replay.source.rules,
                                                             .chunks = replay.source.chunks,
                                                             .shard_create = create_shard,
                                                             .shard_write = write_shard,
                                                             .context = &replay.source,
                                                             .shard_limit = UNWIND_SHARD_COUNT});
    replay.is_stale = true;
    start(&replay, argv + 3);
    time_t end = time(NULL) + TIMEOUT_S;
    while (replay.samples < replay.wanted && time(NULL) < end) {
        usleep(20000);
        for (int i = 0; i < replay.ring_count; i++)
            drain(&replay, replay.rings[i]);
    }
    kill(replay.pid, SIGKILL);
    waitpid(replay.pid, NULL, 0);
    printf("samples=%u agree=%u complete=%u expected=%u dwfl_complete=%u cut=%u\n", replay.samples,
           replay.agreeing, replay.complete, replay.as_expected, replay.dwfl_complete, replay.cut);
    return 0;
}
