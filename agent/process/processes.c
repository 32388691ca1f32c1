#include "agent/process/processes.h"

#include "agent/process/proc_text.h"
#include "agent/process/process.h"
#include "agent/process/process_event.h"
#include "agent/process/process_file.h"
#include "agent/process/procfs_file.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    BUCKET_COUNT = 4096,
    PROCESSES_MAX = 65536,
    MAPPINGS_MAX = 524288,
    MAPPINGS_OF_ONE_MAX = 65536,
    MAPS_MAX_BYTES = 64 << 20,
    STAT_MAX_BYTES = 4096,
    PATH_BYTES = 64,
    MAP_EVENTS_MAX = 256, /* per process and second; more events cause a scan of /proc/PID/maps */
    /* A scan that took t is followed by a pause of so many t: for one process, for all processes
     * together, and for the whole of /proc after losses. Immediate scans and scans in sweeps have a
     * pause each, because a process that needs immediate scans all the time would otherwise block
     * the sweeps. */
    SCAN_PAUSE_FACTOR = 10,
    ALL_SCANS_PAUSE_FACTOR = 10,
    LOSS_PAUSE_FACTOR = 10,
};

#define USER_ADDRESS_END (UINT64_C(1) << 63)
#define KEPT_AFTER_END_NS (3 * CLOCK_NS_PER_S)
#define RESCAN_PAUSE_NS CLOCK_NS_PER_S
#define REFUSED_PAUSE_NS (10 * CLOCK_NS_PER_S)
/* In one call, because samples wait meanwhile. */
#define SWEEP_MAX_NS (50 * CLOCK_NS_PER_MS)
#define LOSS_SCAN_MAX_NS (300 * CLOCK_NS_PER_MS)

struct processes {
    struct binaries *binaries;
    struct processes_options options;
    struct process *buckets[BUCKET_COUNT];
    struct processes_counts counts;
    uint64_t ns_per_tick;
    int64_t next_all_ns;   /* earliest scan of the whole of /proc after a loss */
    int64_t next_scan_ns;  /* earliest immediate scan of a known process */
    int64_t next_sweep_ns; /* earliest scan of a waiting process in a sweep */
    uint32_t swept_bucket; /* bucket of the last scan in a sweep */
    bool is_scan_due;      /* events were lost since the last scan of the whole of /proc */
};

struct processes *processes_create(struct binaries *binaries,
                                   const struct processes_options *options)
{
    struct processes *processes = mem_new(struct processes, 1);
    processes->binaries = binaries;
    processes->options = *options;
    const long ticks = sysconf(_SC_CLK_TCK);
    processes->ns_per_tick = (uint64_t)CLOCK_NS_PER_S / (uint64_t)(ticks > 0 ? ticks : 100);
    return processes;
}

/* ---- the table ---- */

static struct process **find_slot(struct processes *processes, uint32_t process_id)
{
    struct process **place = &processes->buckets[process_id % BUCKET_COUNT];
    while (*place && (*place)->process_id != process_id)
        place = &(*place)->next;
    return place;
}

static void release_binary(struct processes *processes, const struct process_mapping *mapping)
{
    if (mapping->binary != BINARY_NONE)
        binaries_release(processes->binaries, mapping->binary);
}

static void drop_mappings(struct processes *processes, struct process *process)
{
    for (uint32_t i = 0; i < process->mapping_count; i++)
        release_binary(processes, &process->mappings[i]);
    processes->counts.mappings -= process->mapping_count;
    process->mapping_count = 0;
    process->program = BINARY_NONE;
}

/* Drops all that belongs to the program that the process executed until now. */
static void drop_program(struct processes *processes, struct process *process)
{
    drop_mappings(processes, process);
    if (processes->options.on_program_end)
        processes->options.on_program_end(processes->options.context, process);
    process->sampled_ns = 0;
    process->unopened_ns = process->unopened_pause_ns = 0;
}

static uint64_t owner_where_counted(const struct processes *processes, struct process *process)
{
    return binaries_are_counted(processes->binaries) ? process_owner(process) : 0;
}

static void forget_process(struct processes *processes, struct process **place)
{
    struct process *process = *place;
    if (processes->options.on_forget)
        processes->options.on_forget(processes->options.context, process);
    *place = process->next;
    drop_program(processes, process);
    mem_free(process->mappings);
    mem_free(process);
    processes->counts.processes--;
}

void processes_destroy(struct processes *processes)
{
    if (!processes)
        return;
    for (uint32_t i = 0; i < BUCKET_COUNT; i++) {
        while (processes->buckets[i])
            forget_process(processes, &processes->buckets[i]);
    }
    mem_free(processes);
}

static struct process *get_or_add(struct processes *processes, uint32_t process_id)
{
    struct process **place = find_slot(processes, process_id);
    if (*place)
        return *place;
    if (processes->counts.processes == PROCESSES_MAX) {
        processes->counts.refused_processes++;
        return NULL;
    }
    struct process *process = mem_new(struct process, 1);
    *process =
        (struct process){.process_id = process_id, .shown_id = process_id, .program = BINARY_NONE};
    processes->counts.processes++;
    return *place = process;
}

static void notify_change(struct processes *processes, struct process *process)
{
    if (processes->options.on_change)
        processes->options.on_change(processes->options.context, process);
}

/* ---- mappings ---- */

/* Counts mappings without room. Their addresses are not kept, so a mapping that is reported again
 * cannot be recognised. Only the excess over the largest number since the program began is counted,
 * so that repeated reports of the same mappings count once. */
static void count_left_out(struct processes *processes, struct process *process, uint32_t count)
{
    process->has_refused = true;
    process->left_out += count;
    if (process->left_out <= process->counted_left_out)
        return;
    processes->counts.refused_mappings += process->left_out - process->counted_left_out;
    process->counted_left_out = process->left_out;
}

static bool reserve_mapping(struct processes *processes, struct process *process)
{
    if (process->mapping_count + 1 >= MAPPINGS_OF_ONE_MAX ||
        processes->counts.mappings + 1 >= MAPPINGS_MAX) {
        count_left_out(processes, process, 1);
        return false;
    }
    /* Two more, because an insertion may split an existing mapping. */
    vec_reserve(process->mappings, process->mapping_capacity, process->mapping_count + 2);
    return true;
}

static void insert_mapping(struct processes *processes, struct process *process, uint32_t i,
                           const struct process_mapping *mapping)
{
    memmove(&process->mappings[i + 1], &process->mappings[i],
            (process->mapping_count - i) * sizeof(*mapping));
    process->mappings[i] = *mapping;
    process->mapping_count++;
    processes->counts.mappings++;
}

static void remove_mapping(struct processes *processes, struct process *process, uint32_t i)
{
    release_binary(processes, &process->mappings[i]);
    process->mapping_count--;
    processes->counts.mappings--;
    memmove(&process->mappings[i], &process->mappings[i + 1],
            (process->mapping_count - i) * sizeof(*process->mappings));
}

/* Removes [start, limit) from the mappings, as mmap does with MAP_FIXED. */
static void unmap_range(struct processes *processes, struct process *process, uint64_t start,
                        uint64_t limit)
{
    uint32_t i = process_mapping_index(process, start);
    if (i < process->mapping_count && process->mappings[i].start < start) {
        struct process_mapping *old = &process->mappings[i];
        struct process_mapping rest = *old;
        old->limit = start;
        i++;
        if (rest.limit > limit) {
            rest.file_offset += limit - rest.start;
            rest.start = limit;
            if (rest.binary != BINARY_NONE)
                binaries_ref(processes->binaries, rest.binary);
            insert_mapping(processes, process, i, &rest);
            return;
        }
    }
    while (i < process->mapping_count && process->mappings[i].limit <= limit)
        remove_mapping(processes, process, i);
    if (i < process->mapping_count && process->mappings[i].start < limit) {
        struct process_mapping *old = &process->mappings[i];
        old->file_offset += limit - old->start;
        old->start = limit;
    }
}

static bool is_vdso(struct span path)
{
    return span_equal_text(path, "[vdso]");
}

/* A named mapping without a file on disk is JIT code. A memfd may be either: container runtimes
 * execute themselves from one. */
static bool is_file(const struct binary_source *source)
{
    const struct span path = source->path;
    if (span_starts_with(path, "/memfd:"))
        return source->build_id.size || binaries_can_read(source);
    return path.size && path.data[0] == '/' && !span_starts_with(path, "//") &&
           !span_starts_with(path, "/dev/") && !span_starts_with(path, "/SYSV") &&
           !span_starts_with(path, "/anon_hugepage");
}

/* Of the two sources, /proc appends " (deleted)" to the path of a deleted file. */
static bool is_path_of(const struct binary *binary, struct span path)
{
    const struct span known = span_text(binary->path);
    if (known.size < path.size || memcmp(known.data, path.data, path.size) != 0)
        return false;
    const struct span rest = span_of(known.data + path.size, known.size - path.size);
    return rest.size == 0 || span_equal_text(rest, " (deleted)");
}

/*
 * Whether the mapping is known already, with the same file as far as the path shows.
 *
 * A scan repeats all mappings without build ids, so an equal path is taken as the same file. A map
 * event without build id is a new mapping and may be of another file that has the path by now (no
 * event reports munmap); the caller then opens the file and compares (retake_binary).
 */
static bool is_reported_again(const struct processes *processes, const struct process *process,
                              const struct binary_source *source, uint64_t file_offset)
{
    const uint32_t i = process_mapping_index(process, source->start);
    if (i == process->mapping_count)
        return false;
    const struct process_mapping *old = &process->mappings[i];
    return old->start == source->start && old->limit == source->limit &&
           old->binary != BINARY_NONE && old->file_offset == file_offset &&
           source->build_id.size == 0 &&
           is_path_of(binaries_get(processes->binaries, old->binary), source->path);
}

/* Whether the file of a mapping that is_reported_again was read; it may have failed to open. */
static bool was_read(const struct processes *processes, const struct process *process,
                     const struct binary_source *source)
{
    const uint32_t number = process->mappings[process_mapping_index(process, source->start)].binary;
    return binaries_get(processes->binaries, number)->file.segment_count > 0;
}

/* Whether the mapping is known already, without a file. */
static bool is_without_file(const struct process *process, const struct binary_source *source)
{
    const struct process_mapping *old = process_find_mapping(process, source->start);
    return old && old->start == source->start && old->limit == source->limit &&
           old->binary == BINARY_NONE && !old->is_refused &&
           old->is_vdso == is_vdso(source->path) && !is_file(source);
}

/* A reference to the binary that a mapping which is_reported_again has now; to the known one if the
 * path does not lead to a readable ELF file any more. */
static uint32_t retake_binary(struct processes *processes, struct process *process,
                              const struct binary_source *source)
{
    const uint32_t old = process->mappings[process_mapping_index(process, source->start)].binary;
    const uint32_t number = binaries_take(processes->binaries, source);
    if (number != BINARY_NONE && binaries_get(processes->binaries, number)->file.segment_count) {
        if (process->program == old)
            process->program = number;
        return number;
    }
    if (number != BINARY_NONE)
        binaries_release(processes->binaries, number);
    binaries_ref(processes->binaries, old);
    return old;
}

/* Counts a refused mapping once, however often it is tried again. */
static void note_refusal(struct processes *processes, struct process *process,
                         const struct process_mapping *mapping)
{
    const struct process_mapping *old = process_find_mapping(process, mapping->start);
    process->has_refused = true;
    if (!old || !old->is_refused || old->start != mapping->start || old->limit != mapping->limit)
        processes->counts.refused_mappings++;
}

static void add_mapping(struct processes *processes, struct process *process,
                        const struct binary_source *source, uint64_t file_offset, bool is_scan)
{
    struct process_mapping mapping = {.start = source->start,
                                      .limit = source->limit,
                                      .file_offset = file_offset,
                                      .binary = BINARY_NONE,
                                      .is_vdso = is_vdso(source->path)};
    /* [vsyscall] is at a kernel address, where programs do not run. */
    if (source->limit > USER_ADDRESS_END)
        return;
    const bool is_known = is_reported_again(processes, process, source, file_offset);
    if ((is_known && is_scan && was_read(processes, process, source)) ||
        (is_scan && is_without_file(process, source)) || !reserve_mapping(processes, process))
        return;
    if (is_known)
        mapping.binary = retake_binary(processes, process, source);
    else if (is_file(source))
        mapping.binary = binaries_take(processes->binaries, source);
    mapping.is_refused = mapping.binary == BINARY_NONE && is_file(source);
    if (mapping.is_refused)
        note_refusal(processes, process, &mapping);
    unmap_range(processes, process, source->start, source->limit);
    insert_mapping(processes, process, process_mapping_index(process, source->start), &mapping);
    if (process->program == BINARY_NONE && mapping.binary != BINARY_NONE)
        process->program = mapping.binary;
    if (mapping.binary != BINARY_NONE && processes->options.on_file)
        processes->options.on_file(processes->options.context, process, &mapping);
}

/* ---- /proc ---- */

static bool read_proc(uint32_t process_id, const char *name, struct buf *text)
{
    char path[PATH_BYTES];
    struct err ignored;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", process_id, name);
    return !procfs_file_read(path, text, &ignored);
}

static bool read_status(uint32_t process_id, struct proc_status *ret_status)
{
    buf_auto text;
    buf_init(&text, STAT_MAX_BYTES);
    return read_proc(process_id, "stat", &text) && proc_text_stat(buf_span(&text), ret_status);
}

/* The thread whose folder in /proc shows the process: /proc/PID is empty once the first thread has
 * ended, but the folders of its other threads are not. process_id if there is no other thread. */
static uint32_t find_survivor(uint32_t process_id)
{
    char path[PATH_BYTES];
    struct proc_status status;
    uint64_t thread_id, found = process_id;
    if (!read_status(process_id, &status) || status.thread_count < 2)
        return process_id;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", process_id);
    DIR *folder = opendir(path);
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry && found == process_id;
         entry = readdir(folder)) {
        if (span_parse_u64(span_text(entry->d_name), &thread_id) && thread_id <= UINT32_MAX)
            found = thread_id;
    }
    if (folder)
        closedir(folder);
    return (uint32_t)found;
}

/* Whether the thread that showed the process has ended and another one was found instead. */
static bool is_shown_by_another(struct process *process)
{
    const uint32_t old = process->shown_id;
    if (!process_file_has_ended(old))
        return false;
    process->shown_id = find_survivor(process->process_id);
    return process->shown_id != old;
}

static void add_maps_of_proc(struct processes *processes, struct process *process)
{
    buf_auto text;
    buf_init(&text, MAPS_MAX_BYTES);
    (void)read_proc(process->shown_id, "maps", &text);
    struct span rest = buf_span(&text), line;
    struct proc_mapping found;
    while (span_take_line(&rest, &line)) {
        if (!proc_text_mapping(line, &found) || !found.is_executable)
            continue;
        const struct binary_source source = {.process_id = process->shown_id,
                                             .owner = owner_where_counted(processes, process),
                                             .start = found.start,
                                             .limit = found.limit,
                                             .path = found.path,
                                             .is_deleted = found.is_deleted,
                                             .inode = found.inode,
                                             .device_major = found.device_major,
                                             .device_minor = found.device_minor};
        add_mapping(processes, process, &source, found.file_offset, true);
    }
}

static void scan_maps(struct processes *processes, struct process *process)
{
    add_maps_of_proc(processes, process);
    /* The thread may have ended during the scan, so that its files did not open. */
    if (is_shown_by_another(process))
        add_maps_of_proc(processes, process);
}

static bool scan_status(struct processes *processes, struct process *process)
{
    struct proc_status status;
    buf_auto text;
    buf_init(&text, STAT_MAX_BYTES);
    if (!read_status(process->process_id, &status))
        return false;
    if (!process->is_start_exact)
        process->started_ns = status.start_ticks * processes->ns_per_tick;
    process->parent_id = status.parent_id;
    process->has_threads = status.thread_count > 1;
    process->is_kernel_thread = status.is_kernel_thread;
    if (read_proc(process->process_id, "comm", &text)) {
        const struct span name = span_trim(buf_span(&text));
        snprintf(process->name, sizeof(process->name), "%.*s", SPAN_PRINT(name));
    }
    return !status.is_kernel_thread;
}

static void scan_process(struct processes *processes, struct process *process)
{
    const int64_t begin_ns = clock_monotonic_ns();
    process->is_known = true;
    process->is_scan_due = process->has_refused = false;
    process->left_out = 0;
    if (scan_status(processes, process)) {
        process->owner = 0; /* setuid may have changed it */
        scan_maps(processes, process);
    }
    const int64_t now_ns = clock_monotonic_ns();
    const int64_t least_ns = process->has_refused ? REFUSED_PAUSE_NS : RESCAN_PAUSE_NS;
    const int64_t pause_ns = SCAN_PAUSE_FACTOR * (now_ns - begin_ns);
    process->scan_ns = now_ns + (pause_ns > least_ns ? pause_ns : least_ns);
    notify_change(processes, process);
}

/* Scans a known process again and postpones the next such scan, *next_ns, because a process with
 * very many mappings takes long, and there may be many such processes. */
static void rescan(struct processes *processes, struct process *process, int64_t *next_ns)
{
    const int64_t begin_ns = clock_monotonic_ns();
    scan_process(processes, process);
    const int64_t spent_ns = clock_monotonic_ns() - begin_ns;
    *next_ns = (*next_ns > begin_ns ? *next_ns : begin_ns) + ALL_SCANS_PAUSE_FACTOR * spent_ns;
}

/* Scans the process now if its pauses are over, else in a sweep. */
static void scan_soon(struct processes *processes, struct process *process, int64_t now_ns)
{
    process->is_scan_due = true;
    if (now_ns >= process->scan_ns && now_ns >= processes->next_scan_ns)
        rescan(processes, process, &processes->next_scan_ns);
}

void processes_make_target(struct processes *processes, uint32_t process_id)
{
    struct process *process = get_or_add(processes, process_id);
    if (!process)
        return;
    process->is_target = true;
    scan_process(processes, process);
}

/* Processes that are left at until_ns are scanned in sweeps. */
static enum err_code scan_all(struct processes *processes, bool has_mappings, int64_t until_ns,
                              struct err *err)
{
    DIR *folder = opendir("/proc");
    uint64_t process_id;
    if (!folder)
        return err_set_errno(err, ERR_IO, "/proc cannot be read");
    processes->counts.scans++;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (!span_parse_u64(span_text(entry->d_name), &process_id) || process_id > UINT32_MAX)
            continue;
        struct process *process = get_or_add(processes, (uint32_t)process_id);
        if (process && !has_mappings)
            scan_status(processes, process);
        else if (process && clock_monotonic_ns() < until_ns)
            scan_process(processes, process);
        else if (process)
            process->is_scan_due = true;
    }
    closedir(folder);
    return ERR_NONE;
}

enum err_code processes_scan(struct processes *processes, bool has_mappings, struct err *err)
{
    return scan_all(processes, has_mappings, INT64_MAX, err);
}

/* ---- events ---- */

/* The start of a program takes about a hundred mappings. A program that maps and unmaps a file in a
 * loop would have the file read each time, while events of other processes are lost. */
static bool exceeds_map_events(struct process *process, int64_t time_ns)
{
    if (time_ns - process->map_second_ns >= CLOCK_NS_PER_S) {
        process->map_second_ns = time_ns;
        process->map_event_count = 0;
    }
    return process->map_event_count++ >= MAP_EVENTS_MAX;
}

static void apply_map(struct processes *processes, const struct process_event *event)
{
    struct process *process = get_or_add(processes, event->process_id);
    if (!process)
        return;
    if (exceeds_map_events(process, event->time_ns)) {
        process->is_scan_due = true;
        return;
    }
    const struct binary_source source = {.process_id = process->shown_id,
                                         .owner = owner_where_counted(processes, process),
                                         .start = event->start,
                                         .limit = event->start + event->bytes,
                                         .path = event->path,
                                         .build_id =
                                             span_of(event->build_id, event->build_id_bytes),
                                         .inode = event->inode,
                                         .device_major = event->device_major,
                                         .device_minor = event->device_minor};
    add_mapping(processes, process, &source, event->file_offset, false);
    notify_change(processes, process);
}

static void apply_name(struct processes *processes, const struct process_event *event)
{
    struct process *process = get_or_add(processes, event->process_id);
    if (!process)
        return;
    if (event->is_exec) {
        drop_program(processes, process);
        process->is_known = true;
        process->is_kernel_thread = false;
        process->owner = 0;
        process->shown_id = process->process_id;
        process->ended_ns = 0; /* exec in another thread ends the first one */
        process->has_threads = false;
        process->is_scan_due = process->has_refused = false;
        process->left_out = process->counted_left_out = 0;
        process->map_event_count = 0;
        notify_change(processes, process);
    }
    if (event->process_id == event->thread_id)
        snprintf(process->name, sizeof(process->name), "%.*s", SPAN_PRINT(event->name));
}

static void copy_mappings(struct processes *processes, struct process *to,
                          const struct process *from)
{
    drop_program(processes, to);
    if (processes->counts.mappings + from->mapping_count > MAPPINGS_MAX) {
        count_left_out(processes, to, from->mapping_count);
        return;
    }
    to->mappings = mem_resize(to->mappings, from->mapping_count + 2, sizeof(*to->mappings));
    to->mapping_capacity = from->mapping_count + 2;
    if (from->mapping_count)
        memcpy(to->mappings, from->mappings, from->mapping_count * sizeof(*to->mappings));
    to->mapping_count = from->mapping_count;
    to->program = from->program;
    processes->counts.mappings += from->mapping_count;
    for (uint32_t i = 0; i < to->mapping_count; i++) {
        if (to->mappings[i].binary != BINARY_NONE)
            binaries_ref(processes->binaries, to->mappings[i].binary);
    }
}

static void apply_fork(struct processes *processes, const struct process_event *event)
{
    struct process **place = find_slot(processes, event->process_id);
    if (event->process_id != event->thread_id) {
        if (*place)
            (*place)->has_threads = true;
        return;
    }
    if (*place) /* the number is reused */
        forget_process(processes, place);
    struct process *process = get_or_add(processes, event->process_id);
    const struct process *parent = *find_slot(processes, event->parent_id);
    if (!process)
        return;
    process->parent_id = event->parent_id;
    process->is_target = parent && parent->is_target;
    if (parent && parent->is_known) {
        process->is_known = true;
        process->is_kernel_thread = parent->is_kernel_thread;
        process->is_scan_due = parent->is_scan_due;
        process->has_refused = parent->has_refused;
        /* A child belongs to the same user; processes of root are owners of their own. */
        process->owner = process_file_is_user(parent->owner) ? parent->owner : 0;
        snprintf(process->name, sizeof(process->name), "%s", parent->name);
        copy_mappings(processes, process, parent);
        process->unopened_ns = parent->unopened_ns;
        process->unopened_pause_ns = parent->unopened_pause_ns;
        if (processes->options.on_fork)
            processes->options.on_fork(processes->options.context, process, parent);
        notify_change(processes, process);
    }
}

/* Other threads may outlive the first one. Files that failed to open since it ended can be opened
 * through them. */
static void apply_exit(struct processes *processes, const struct process_event *event)
{
    struct process *process = *find_slot(processes, event->process_id);
    if (!process || event->process_id != event->thread_id)
        return;
    process->ended_ns = event->time_ns;
    if (process->has_threads && process->is_known && is_shown_by_another(process))
        scan_soon(processes, process, clock_monotonic_ns());
}

/* Rescans /proc after lost events, rate-limited: a scan itself can cause losses and would otherwise
 * trigger itself for ever. */
static void scan_if_due(struct processes *processes, int64_t now_ns)
{
    struct err ignored;
    if (!processes->is_scan_due || now_ns < processes->next_all_ns)
        return;
    const int64_t begin_ns = clock_monotonic_ns();
    /* If /proc cannot be read, the known state is all there is. */
    if (scan_all(processes, !processes->options.has_targets, begin_ns + LOSS_SCAN_MAX_NS, &ignored))
        processes->counts.failed_scans++;
    processes->is_scan_due = false;
    const int64_t end_ns = clock_monotonic_ns(), pause_ns = LOSS_PAUSE_FACTOR * (end_ns - begin_ns);
    processes->next_all_ns = end_ns + (pause_ns > RESCAN_PAUSE_NS ? pause_ns : RESCAN_PAUSE_NS);
}

/* Whether the event concerns a process that is kept. */
static bool is_relevant(struct processes *processes, const struct process_event *event)
{
    if (!processes->options.has_targets || event->kind == PROCESS_EVENT_LOST)
        return true;
    const bool is_fork = event->kind == PROCESS_EVENT_FORK;
    const uint32_t process_id = is_fork ? event->parent_id : event->process_id;
    const struct process *process = *find_slot(processes, process_id);
    /* A reused number: the target that had it is forgotten. */
    const struct process *old = is_fork ? *find_slot(processes, event->process_id) : NULL;
    return (process && process->is_target) || (old && old->is_target);
}

void processes_apply(struct processes *processes, const struct process_event *event)
{
    if (!is_relevant(processes, event))
        return;
    switch (event->kind) {
    case PROCESS_EVENT_MAP:
        apply_map(processes, event);
        break;
    case PROCESS_EVENT_NAME:
        apply_name(processes, event);
        break;
    case PROCESS_EVENT_FORK:
        apply_fork(processes, event);
        break;
    case PROCESS_EVENT_EXIT:
        apply_exit(processes, event);
        break;
    case PROCESS_EVENT_LOST:
        processes->is_scan_due = true;
        scan_if_due(processes, clock_monotonic_ns());
        break;
    }
}

/* ---- samples ---- */

static bool is_same_start(const struct processes *processes, const struct process *process,
                          uint64_t started_ns)
{
    if (process->started_ns == 0 || started_ns == 0)
        return true;
    if (process->is_start_exact)
        return process->started_ns == started_ns;
    /* /proc cuts the start time to whole ticks. */
    return started_ns >= process->started_ns &&
           started_ns - process->started_ns < 2 * processes->ns_per_tick;
}

struct process *processes_find(struct processes *processes, uint32_t process_id,
                               uint64_t started_ns)
{
    struct process **place = find_slot(processes, process_id);
    if (*place && !is_same_start(processes, *place, started_ns))
        forget_process(processes, place);
    struct process *process = get_or_add(processes, process_id);
    if (!process)
        return NULL;
    if (started_ns) {
        process->started_ns = started_ns;
        process->is_start_exact = true;
    }
    if (!process->is_known)
        scan_process(processes, process);
    return process;
}

const struct process *processes_get(struct processes *processes, uint32_t process_id)
{
    return *find_slot(processes, process_id);
}

const struct process_mapping *processes_find_mapping(struct processes *processes,
                                                     struct process *process, uint64_t address)
{
    const struct process_mapping *mapping = process_find_mapping(process, address);
    const int64_t now_ns = clock_monotonic_ns();
    if (mapping || process_has_ended(process) || now_ns < process->scan_ns)
        return mapping;
    /* mprotect(PROT_EXEC) of a mapped file causes no event. */
    scan_soon(processes, process, now_ns);
    return process_find_mapping(process, address);
}

/* For a process whose first thread ended a while ago: whether no other thread runs. If one does,
 * the process is kept for another while. */
static bool has_no_threads(struct process *process, int64_t now_ns)
{
    process->shown_id = find_survivor(process->process_id);
    if (process->shown_id != process->process_id)
        process->ended_ns = now_ns;
    return process->ended_ns != now_ns;
}

/* The process of a bucket that has waited longest for a scan; NULL: none waits. */
static struct process *find_waiting(const struct processes *processes, uint32_t bucket,
                                    int64_t now_ns)
{
    struct process *found = NULL;
    for (struct process *each = processes->buckets[bucket]; each; each = each->next) {
        if ((each->is_scan_due || each->has_refused) && now_ns >= each->scan_ns &&
            !process_has_ended(each) && (!found || each->scan_ns < found->scan_ns))
            found = each;
    }
    return found;
}

/* Scans waiting processes bucket by bucket; the next call continues with the next bucket. */
static void scan_waiting(struct processes *processes, int64_t now_ns)
{
    const int64_t until_ns = clock_monotonic_ns() + SWEEP_MAX_NS;
    bool has_time = now_ns >= processes->next_sweep_ns;
    for (uint32_t i = 0; i < BUCKET_COUNT && has_time; i++) {
        processes->swept_bucket = (processes->swept_bucket + 1) % BUCKET_COUNT;
        struct process *process = find_waiting(processes, processes->swept_bucket, now_ns);
        if (!process)
            continue;
        rescan(processes, process, &processes->next_sweep_ns);
        has_time = clock_monotonic_ns() < until_ns;
    }
}

void processes_sweep(struct processes *processes, int64_t now_ns)
{
    scan_if_due(processes, now_ns);
    for (uint32_t i = 0; i < BUCKET_COUNT; i++) {
        struct process **place = &processes->buckets[i];
        while (*place) {
            const int64_t ended_ns = (*place)->ended_ns;
            if (ended_ns && now_ns - ended_ns > KEPT_AFTER_END_NS &&
                has_no_threads(*place, now_ns)) {
                forget_process(processes, place);
                continue;
            }
            place = &(*place)->next;
        }
    }
    scan_waiting(processes, now_ns);
}

void processes_count(const struct processes *processes, struct processes_counts *ret_counts)
{
    *ret_counts = processes->counts;
}

void processes_each(struct processes *processes,
                    void (*visit)(void *context, struct process *process), void *context)
{
    for (uint32_t i = 0; i < BUCKET_COUNT; i++) {
        for (struct process *process = processes->buckets[i]; process; process = process->next)
            visit(context, process);
    }
}
