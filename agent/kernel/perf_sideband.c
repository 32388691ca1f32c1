#include "agent/kernel/perf_sideband.h"

#include "agent/kernel/cpu_list.h"
#include "agent/kernel/event_opener.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/stack_copy.h"
#include "agent/process/process_event.h"
#include "bpf/shared.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* OWN_RING_BYTES: a user may lock 516 KiB per CPU (kernel.perf_event_mlock_kb), which is 512 KiB of
 * data and the first page of the ring. */
enum { RING_BYTES = 256 << 10, OWN_RING_BYTES = 512 << 10, RECORD_MAX_BYTES = 65536 };

/* The ring of one CPU. The time of its next record is read in advance, to find the oldest one of
 * all rings. */
struct ring {
    int fd;
    uint32_t cpu;
    struct perf_event_mmap_page *page; /* the kernel's head and our tail; the data follows it */
    size_t mapped_bytes;
    int64_t next_ns; /* time of the record at the tail; INT64_MAX: none is known */
};

/* An event of one thread on one CPU, which writes into the ring of the CPU. */
struct watch {
    int fd;
    uint32_t cpu;
};

struct perf_sideband {
    struct perf_sideband_options options;
    struct ring *rings;
    uint32_t ring_count;
    uint32_t ring_capacity;
    uint64_t data_bytes;     /* size of a ring, a power of two */
    uint8_t *wrapped_record; /* buffer for a record that continues at the start of its ring */
    struct watch *watches;   /* events of single threads */
    uint32_t watch_count;
    uint32_t watch_capacity;
    struct sample_event *sample; /* buffer for one sample; NULL: samples are not read */
};

/* ---- records ---- */

/* The fixed part of a PERF_RECORD_MMAP2 after its header. The path follows it, and then the time,
 * with which each record ends. */
struct mmap2_head {
    uint32_t process_id, thread_id;
    uint64_t start, bytes, file_offset;
    union {
        struct {
            uint32_t major, minor;
            uint64_t inode, generation;
        } file;
        struct {
            uint8_t size, reserved[3];
            uint8_t id[PROCESS_EVENT_BUILD_ID_MAX_BYTES];
        } build;
    };
    uint32_t protection, flags;
};

struct task_record {
    uint32_t process_id, parent_id, thread_id, parent_thread_id;
    uint64_t time_ns;
};

static bool take_bytes(struct span *rest, void *to, size_t size)
{
    if (rest->size < size)
        return false;
    memcpy(to, rest->data, size);
    *rest = span_of(rest->data + size, rest->size - size);
    return true;
}

/* Reads a text that ends with a NUL; the kernel pads it with further NULs to 8 bytes. */
static bool take_text(struct span rest, struct span *ret_text)
{
    const uint8_t *end = memchr(rest.data, 0, rest.size);
    if (!end)
        return false;
    *ret_text = span_of(rest.data, (size_t)(end - rest.data));
    return true;
}

static bool parse_map(struct span rest, bool has_build_id, struct process_event *event)
{
    struct mmap2_head head;
    if (!take_bytes(&rest, &head, sizeof(head)) || !take_text(rest, &event->path) ||
        head.start + head.bytes < head.start)
        return false;
    event->kind = PROCESS_EVENT_MAP;
    event->process_id = head.process_id;
    event->thread_id = head.thread_id;
    event->start = head.start;
    event->bytes = head.bytes;
    event->file_offset = head.file_offset;
    if (!has_build_id) {
        event->inode = head.file.inode;
        event->device_major = head.file.major;
        event->device_minor = head.file.minor;
        return true;
    }
    if (head.build.size > PROCESS_EVENT_BUILD_ID_MAX_BYTES)
        return false;
    event->build_id_bytes = head.build.size;
    memcpy(event->build_id, head.build.id, head.build.size);
    return true;
}

static bool parse_name(struct span rest, bool is_exec, struct process_event *event)
{
    event->kind = PROCESS_EVENT_NAME;
    event->is_exec = is_exec;
    return take_bytes(&rest, &event->process_id, 4) && take_bytes(&rest, &event->thread_id, 4) &&
           take_text(rest, &event->name);
}

static bool parse_task(struct span rest, enum process_event_kind kind, struct process_event *event)
{
    struct task_record task;
    if (!take_bytes(&rest, &task, sizeof(task)))
        return false;
    event->kind = kind;
    event->process_id = task.process_id;
    event->thread_id = task.thread_id;
    event->parent_id = task.parent_id;
    return true;
}

static bool parse_lost(struct span rest, struct process_event *event)
{
    uint64_t id;
    event->kind = PROCESS_EVENT_LOST;
    return take_bytes(&rest, &id, 8) && take_bytes(&rest, &event->lost_count, 8);
}

bool perf_sideband_parse(struct span record, struct process_event *ret_event)
{
    struct perf_event_header header;
    struct process_event event = {0};
    struct span rest = record;
    if (!take_bytes(&rest, &header, sizeof(header)) || rest.size < 8 || header.size != record.size)
        return false;
    memcpy(&event.time_ns, rest.data + rest.size - 8, 8);
    rest.size -= 8;
    bool is_wanted = false;
    switch (header.type) {
    case PERF_RECORD_MMAP2:
        is_wanted = parse_map(rest, header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID, &event);
        break;
    case PERF_RECORD_COMM:
        is_wanted = parse_name(rest, header.misc & PERF_RECORD_MISC_COMM_EXEC, &event);
        break;
    case PERF_RECORD_FORK:
        is_wanted = parse_task(rest, PROCESS_EVENT_FORK, &event);
        break;
    case PERF_RECORD_EXIT:
        is_wanted = parse_task(rest, PROCESS_EVENT_EXIT, &event);
        break;
    case PERF_RECORD_LOST:
        is_wanted = parse_lost(rest, &event);
        break;
    default:
        break;
    }
    if (is_wanted)
        *ret_event = event;
    return is_wanted;
}

/* ---- samples ---- */

/* The start of a PERF_RECORD_SAMPLE after its header, with the fields that perf_event_open_own
 * requests. The addresses follow. */
struct sample_head {
    uint32_t process_id, thread_id;
    uint64_t time_ns, period, address_count;
};

/* Copies the user addresses. Markers such as PERF_CONTEXT_USER are between them. */
static uint32_t take_addresses(struct span *rest, uint64_t count, __u64 *addresses)
{
    uint32_t taken = 0;
    uint64_t address;
    for (uint64_t i = 0; i < count; i++) {
        if (!take_bytes(rest, &address, sizeof(address)))
            break;
        /* All addresses but the first are return addresses, which point behind the call
         * instruction; sample_event contains addresses inside of that instruction. */
        if (address < (uint64_t)PERF_CONTEXT_MAX && taken < SAMPLE_USER_FRAMES_MAX)
            addresses[taken] = address - (taken > 0), taken++;
    }
    return taken;
}

/* Reads the registers and the copied part of the stack, which begins at the stack pointer. False:
 * the sample has no such part (or is malformed), or its process has 32 bits. */
static bool take_copy(struct span rest, struct stack_copy *copy)
{
    uint64_t abi, one, size, copied;
    if (!take_bytes(&rest, &abi, sizeof(abi)) || abi != PERF_SAMPLE_REGS_ABI_64)
        return false;
    memset(copy->registers, 0, sizeof(copy->registers));
    for (uint32_t i = 0; i < PERF_EVENT_REGISTER_COUNT; i++) {
        const uint32_t number = perf_event_register(i);
        if (!take_bytes(&rest, &one, sizeof(one)))
            return false;
        if (number == PERF_EVENT_REGISTER_PC)
            copy->pc = one;
        else
            copy->registers[number] = one;
    }
    if (!take_bytes(&rest, &size, sizeof(size)) || size == 0 || rest.size < size ||
        rest.size - size < sizeof(copied))
        return false;
    memcpy(&copied, rest.data + size, sizeof(copied));
    copy->start = copy->registers[STACK_REGISTER_SP];
    copy->bytes = span_of(rest.data, copied < size ? copied : size);
    return true;
}

static void pass_sample(const struct perf_sideband *band, struct span record)
{
    struct perf_event_header header;
    struct sample_head head;
    struct sample_event *sample = band->sample;
    if (!sample || !take_bytes(&record, &header, sizeof(header)) ||
        !take_bytes(&record, &head, sizeof(head)))
        return;
    memset(sample, 0, SAMPLE_EVENT_HEAD_BYTES);
    sample->time_ns = head.time_ns;
    sample->process_id = head.process_id;
    sample->thread_id = head.thread_id;
    sample->amount = head.period;
    sample->kind = SAMPLE_TICK;
    sample->user_count = take_addresses(&record, head.address_count, sample->addresses);
    struct stack_copy copy;
    band->options.on_sample(band->options.context, sample, take_copy(record, &copy) ? &copy : NULL);
}

/* ---- rings ---- */

static const uint8_t *ring_data(const struct ring *ring)
{
    return (const uint8_t *)ring->page + ring->page->data_offset;
}

/* The record at the tail, in place or copied; empty: there is none. A record before data_head is
 * complete, because the kernel moves data_head only after it has written the record. */
static struct span ring_record(const struct perf_sideband *band, const struct ring *ring)
{
    const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    const uint64_t tail = ring->page->data_tail, mask = band->data_bytes - 1;
    const uint8_t *data = ring_data(ring);
    struct perf_event_header header;
    if (head - tail < sizeof(header))
        return (struct span){0};
    /* Records are aligned to 8 bytes, so the header never continues at the start of the ring. */
    memcpy(&header, data + (tail & mask), sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail)
        return (struct span){0};
    const uint64_t to_end = band->data_bytes - (tail & mask);
    if (header.size <= to_end)
        return span_of(data + (tail & mask), header.size);
    memcpy(band->wrapped_record, data + (tail & mask), to_end);
    memcpy(band->wrapped_record + to_end, data, header.size - to_end);
    return span_of(band->wrapped_record, header.size);
}

enum { SAMPLE_TIME = sizeof(struct perf_event_header) + offsetof(struct sample_head, time_ns) };

static bool is_sample(struct span record)
{
    struct perf_event_header header;
    return take_bytes(&record, &header, sizeof(header)) && header.type == PERF_RECORD_SAMPLE;
}

static void ring_peek(const struct perf_sideband *band, struct ring *ring)
{
    const struct span record = ring_record(band, ring);
    ring->next_ns = INT64_MAX;
    if (is_sample(record) && record.size >= SAMPLE_TIME + 8)
        memcpy(&ring->next_ns, record.data + SAMPLE_TIME, 8);
    else if (record.size >= sizeof(struct perf_event_header) + 8)
        memcpy(&ring->next_ns, record.data + record.size - 8, 8);
    else if (record.size)
        ring->next_ns = 0; /* malformed: skipped first */
}

static void ring_take(struct perf_sideband *band, struct ring *ring)
{
    const struct span record = ring_record(band, ring);
    struct process_event event;
    if (is_sample(record))
        pass_sample(band, record);
    else if (perf_sideband_parse(record, &event))
        band->options.on_event(band->options.context, &event);
    __atomic_store_n(&ring->page->data_tail, ring->page->data_tail + record.size, __ATOMIC_RELEASE);
    ring_peek(band, ring);
}

static struct ring *oldest_ring(struct perf_sideband *band)
{
    struct ring *oldest = &band->rings[0];
    for (uint32_t i = 0; i < band->ring_count; i++) {
        struct ring *ring = &band->rings[i];
        if (ring->next_ns == INT64_MAX)
            ring_peek(band, ring);
        if (ring->next_ns < oldest->next_ns)
            oldest = ring;
    }
    return oldest;
}

void perf_sideband_read_until(struct perf_sideband *band, int64_t time_ns)
{
    for (;;) {
        struct ring *ring = oldest_ring(band);
        if (ring->next_ns == INT64_MAX || ring->next_ns > time_ns)
            return;
        ring_take(band, ring);
    }
}

/* ---- opening ---- */

/* Linux's default for kernel.perf_event_paranoid is 2. Above that (Debian: 3) users may not even
 * sample their own programs. */
static bool may_sample_own(int64_t *ret_level)
{
    char text[32] = "";
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    const bool is_read = file && fgets(text, sizeof(text), file);
    if (file)
        fclose(file);
    *ret_level = is_read ? strtol(text, NULL, 10) : 0;
    return *ret_level <= 2;
}

static enum err_code fail_own(const char *what, struct err *err)
{
    int64_t level;
    if (!may_sample_own(&level))
        return err_set(err, ERR_FORBIDDEN,
                       "kernel.perf_event_paranoid is %d, which forbids users to sample even their "
                       "own programs: run `sysctl kernel.perf_event_paranoid=2` as root",
                       (int)level);
    return err_set_errno(err, ERR_FORBIDDEN,
                         "%s: without CAP_PERFMON only your own programs that have no more rights "
                         "than you can be sampled",
                         what);
}

static enum err_code set_error(const char *what, struct err *err)
{
    const enum err_code code = errno == EPERM || errno == EACCES    ? ERR_FORBIDDEN
                               : errno == EINVAL || errno == ENOSYS ? ERR_UNSUPPORTED
                                                                    : ERR_IO;
    return err_set_errno(
        err, code, code == ERR_FORBIDDEN ? "%s: run as root, or grant CAP_PERFMON" : "%s", what);
}

static int open_ring_event(const struct perf_sideband *band, uint32_t cpu)
{
    if (band->sample)
        return perf_event_open_own_ring(cpu, (uint32_t)band->data_bytes / 2);
    const int fd = event_opener_sideband(band->options.opener, cpu, true);
    return fd < 0 && errno == EINVAL ? event_opener_sideband(band->options.opener, cpu, false) : fd;
}

static enum err_code fail_ring(const struct perf_sideband *band, uint32_t cpu, struct err *err)
{
    if (errno == ENODEV)
        return err_set(err, ERR_NOT_FOUND, "CPU %u is offline", cpu);
    if (band->sample && (errno == EACCES || errno == EPERM))
        return fail_own("watching processes", err);
    return set_error("watching processes", err);
}

static void close_ring(const struct ring *ring)
{
    if (ring->page)
        munmap(ring->page, ring->mapped_bytes);
    os_close(ring->fd);
}

static enum err_code open_ring(const struct perf_sideband *band, uint32_t cpu,
                               struct ring *ret_ring, struct err *err)
{
    struct ring ring = {.cpu = cpu, .next_ns = INT64_MAX, .fd = open_ring_event(band, cpu)};
    if (ring.fd < 0)
        return fail_ring(band, cpu, err);
    ring.mapped_bytes = band->data_bytes + (size_t)sysconf(_SC_PAGESIZE);
    void *mapped = mmap(NULL, ring.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
    if (mapped == MAP_FAILED) {
        const enum err_code code = set_error("mapping the ring of processes", err);
        close_ring(&ring);
        return code;
    }
    ring.page = mapped;
    *ret_ring = ring;
    return ERR_NONE;
}

static struct ring *find_ring(const struct perf_sideband *band, uint32_t cpu)
{
    for (uint32_t i = 0; i < band->ring_count; i++)
        if (band->rings[i].cpu == cpu)
            return &band->rings[i];
    return NULL;
}

/* Closes the events of single threads, because they write into the ring of this CPU, which will be
 * replaced. */
static void close_watches(struct perf_sideband *band, uint32_t cpu)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < band->watch_count; i++) {
        if (band->watches[i].cpu == cpu)
            os_close(band->watches[i].fd);
        else
            band->watches[count++] = band->watches[i];
    }
    band->watch_count = count;
}

enum err_code perf_sideband_open_cpu(struct perf_sideband *band, uint32_t cpu, struct err *err)
{
    struct ring ring;
    const enum err_code code = open_ring(band, cpu, &ring, err);
    if (code)
        return code;
    struct ring *old = find_ring(band, cpu);
    if (old) {
        close_watches(band, cpu);
        close_ring(old);
        *old = ring;
        return ERR_NONE;
    }
    vec_reserve(band->rings, band->ring_capacity, band->ring_count + 1);
    band->rings[band->ring_count++] = ring;
    return ERR_NONE;
}

/* Events of single threads (band->sample) continue when their CPU returns: the kernel stops only
 * the events of a CPU permanently. */
bool perf_sideband_records_cpu(const struct perf_sideband *band, uint32_t cpu)
{
    const struct ring *ring = find_ring(band, cpu);
    return ring && (band->sample || perf_event_is_alive(ring->fd));
}

/* Opens the rings of the CPUs that are still online. */
static enum err_code open_rings(struct perf_sideband *band, struct cpu_list cpus, struct err *err)
{
    for (uint32_t i = 0; i < cpus.count; i++) {
        const enum err_code code = perf_sideband_open_cpu(band, cpus.cpus[i], err);
        if (code && code != ERR_NOT_FOUND)
            return code;
    }
    return band->ring_count
               ? ERR_NONE
               : err_set(err, ERR_UNSUPPORTED, "no perf event could be opened on any CPU");
}

static uint64_t choose_bytes(uint32_t wanted)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    while (bytes < (wanted ? wanted : RING_BYTES))
        bytes *= 2;
    return bytes;
}

enum err_code perf_sideband_open(const struct perf_sideband_options *options,
                                 struct perf_sideband **ret_band, struct err *err)
{
    arena_auto arena = arena_create();
    uint32_t *cpus, cpu_count;
    enum err_code code = cpu_list_online(arena, &cpus, &cpu_count, err);
    if (code)
        return code;
    struct perf_sideband *band = mem_new(struct perf_sideband, 1);
    band->options = *options;
    band->data_bytes = choose_bytes(
        options->on_sample && !options->ring_bytes ? OWN_RING_BYTES : options->ring_bytes);
    band->wrapped_record = mem_new(uint8_t, RECORD_MAX_BYTES);
    if (options->on_sample)
        band->sample = mem_new(struct sample_event, 1);
    code = open_rings(band, (struct cpu_list){cpus, cpu_count}, err);
    if (code) {
        perf_sideband_close(band);
        return code;
    }
    *ret_band = band;
    return ERR_NONE;
}

void perf_sideband_close(struct perf_sideband *band)
{
    if (!band)
        return;
    for (uint32_t i = 0; i < band->ring_count; i++)
        close_ring(&band->rings[i]);
    for (uint32_t i = 0; i < band->watch_count; i++)
        os_close(band->watches[i].fd);
    mem_free(band->watches);
    mem_free(band->sample);
    mem_free(band->rings);
    mem_free(band->wrapped_record);
    mem_free(band);
}

/* ---- single processes ---- */

static enum err_code fail_watch(const struct perf_sideband *band, uint32_t process_id,
                                struct err *err)
{
    if (errno == ESRCH)
        return err_set(err, ERR_NOT_FOUND, "there is no process %u", process_id);
    if (errno == ENOENT || errno == EOPNOTSUPP)
        return err_set(err, ERR_UNSUPPORTED, "this host cannot count %s",
                       event_facts(band->options.event)->name);
    if (errno == EACCES || errno == EPERM)
        return fail_own("sampling a process", err);
    return set_error("sampling a process", err);
}

/* Opens an event of a thread whose records go to the ring of a CPU. */
static int open_watch(const struct perf_sideband *band, uint32_t thread_id, const struct ring *ring)
{
    struct perf_event_own wanted = {.hz = band->options.frequency_hz,
                                    .kind = band->options.event,
                                    .has_build_ids = true,
                                    .has_no_stacks = band->options.has_no_copies};
    int fd = perf_event_open_own(thread_id, ring->cpu, &wanted);
    wanted.has_build_ids = false;
    if (fd < 0 && errno == EINVAL)
        fd = perf_event_open_own(thread_id, ring->cpu, &wanted);
    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd)) {
        const int error = errno;
        os_close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* only: NULL: on all CPUs. */
static enum err_code watch_thread(struct perf_sideband *band, uint32_t thread_id,
                                  const struct ring *only, struct err *err)
{
    for (uint32_t i = 0; i < band->ring_count; i++) {
        if (only && only != &band->rings[i])
            continue;
        const int fd = open_watch(band, thread_id, &band->rings[i]);
        if (fd < 0 && errno == ENODEV)
            continue;
        if (fd < 0)
            return fail_watch(band, thread_id, err);
        vec_reserve(band->watches, band->watch_capacity, band->watch_count + 1);
        band->watches[band->watch_count++] = (struct watch){fd, band->rings[i].cpu};
    }
    return ERR_NONE;
}

static enum err_code watch_process(struct perf_sideband *band, uint32_t process_id,
                                   const struct ring *only, struct err *err)
{
    char path[64];
    uint64_t thread_id;
    enum err_code code = ERR_NONE;
    snprintf(path, sizeof(path), "/proc/%u/task", process_id);
    DIR *folder = opendir(path);
    if (!folder)
        return err_set(err, ERR_NOT_FOUND, "there is no process %u", process_id);
    for (const struct dirent *entry = readdir(folder); !code && entry; entry = readdir(folder)) {
        if (!span_parse_u64(span_text(entry->d_name), &thread_id) || thread_id > INT32_MAX)
            continue;
        code = watch_thread(band, (uint32_t)thread_id, only, err);
        /* A thread that has just ended; the process still runs. */
        if (code == ERR_NOT_FOUND && thread_id != process_id)
            code = ERR_NONE;
    }
    closedir(folder);
    return code;
}

enum err_code perf_sideband_watch(struct perf_sideband *band, uint32_t process_id, struct err *err)
{
    return watch_process(band, process_id, NULL, err);
}

enum err_code perf_sideband_watch_cpu(struct perf_sideband *band, uint32_t process_id, uint32_t cpu,
                                      struct err *err)
{
    const struct ring *ring = find_ring(band, cpu);
    assert(ring);
    return watch_process(band, process_id, ring, err);
}

void perf_sideband_stop(struct perf_sideband *band)
{
    for (uint32_t i = 0; i < band->watch_count; i++)
        (void)ioctl(band->watches[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint32_t perf_sideband_fd_count(const struct perf_sideband *band)
{
    return band->ring_count;
}

void perf_sideband_fds(const struct perf_sideband *band, int *ret_fds)
{
    for (uint32_t i = 0; i < band->ring_count; i++)
        ret_fds[i] = band->rings[i].fd;
}
