/*
 * A process is scanned when it is first seen. It is scanned again in these cases:
 *
 *   case                                            when
 *   ----------------------------------------------  ---------------------------------------------
 *   a sample has an address without a mapping       at once, or in a sweep while a pause lasts
 *   its first thread ended, another one runs        at once, or in a sweep while a pause lasts
 *   more than 256 map events in a second            in a sweep
 *   a mapping was refused                           in a sweep, 10 s after the last scan
 *   it was not reached by a scan after lost events  in a sweep
 *
 * Pauses keep the agent from spending its time on scans. After a scan that took t:
 *   - this process is not scanned for 10 t, at least 1 s, or 10 s if it has refused mappings
 *     (scan_ns);
 *   - no known process is scanned at once (next_scan_ns), or in a sweep (next_sweep_ns), until 10 t
 *     after the start of the scan, depending on which of the two this scan was.
 * Example: each of twelve processes takes 60 ms. After an immediate scan there is no other one for
 * 540 ms, so immediate scans take at most a tenth of the time. A sweep, once a second, scans one of
 * the processes that wait and then ends, because its 50 ms are over; the next sweep continues with
 * the next process. Twelve processes are therefore scanned in twelve seconds at the latest.
 */
#include "agent/process/proc_text.h"
#include "agent/process/process_file.h"
#include "agent/process/processes_internal.h"
#include "agent/process/procfs_file.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    MAPS_MAX_BYTES = 64 << 20,
    STAT_MAX_BYTES = 4096,
    PATH_BYTES = 64,
    /* A scan that took t is followed by a pause of this many times t: for one process, for all
     * processes together, and for the whole of /proc after losses. Immediate scans and scans in
     * sweeps have a pause each, because a process that needs immediate scans all the time would
     * otherwise block the sweeps. */
    SCAN_PAUSE_FACTOR = 10,
    ALL_SCANS_PAUSE_FACTOR = 10,
    LOSS_PAUSE_FACTOR = 10,
};

#define RESCAN_PAUSE_NS CLOCK_NS_PER_S
#define REFUSED_PAUSE_NS (10 * CLOCK_NS_PER_S)
/* Limits for one call, because samples wait meanwhile. */
#define SWEEP_MAX_NS (50 * CLOCK_NS_PER_MS)
#define LOSS_SCAN_MAX_NS (300 * CLOCK_NS_PER_MS)

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

bool processes_find_other_thread(struct process *process)
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
                                             .owner = processes_counted_owner(processes, process),
                                             .start = found.start,
                                             .limit = found.limit,
                                             .path = found.path,
                                             .is_deleted = found.is_deleted,
                                             .inode = found.inode,
                                             .device_major = found.device_major,
                                             .device_minor = found.device_minor};
        processes_add_mapping(processes, process, &source, found.file_offset, true);
    }
}

static void scan_maps(struct processes *processes, struct process *process)
{
    add_maps_of_proc(processes, process);
    /* The thread may have ended during the scan, so that its files did not open. */
    if (processes_find_other_thread(process))
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

void processes_scan_process(struct processes *processes, struct process *process)
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
    processes_notify_change(processes, process);
}

/* Scans a known process again and postpones the next such scan, *next_ns, because a process with
 * very many mappings takes long, and there may be many such processes. */
static void rescan_process(struct processes *processes, struct process *process, int64_t *next_ns)
{
    const int64_t begin_ns = clock_monotonic_ns();
    processes_scan_process(processes, process);
    const int64_t spent_ns = clock_monotonic_ns() - begin_ns;
    *next_ns = (*next_ns > begin_ns ? *next_ns : begin_ns) + ALL_SCANS_PAUSE_FACTOR * spent_ns;
}

void processes_scan_soon(struct processes *processes, struct process *process, int64_t now_ns)
{
    process->is_scan_due = true;
    if (now_ns >= process->scan_ns && now_ns >= processes->next_scan_ns)
        rescan_process(processes, process, &processes->next_scan_ns);
}

void processes_make_target(struct processes *processes, uint32_t process_id)
{
    struct process *process = processes_get_or_add(processes, process_id);
    if (!process)
        return;
    process->is_target = true;
    processes_scan_process(processes, process);
}

/* Processes that were not reached before until_ns are scanned in sweeps. */
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
        struct process *process = processes_get_or_add(processes, (uint32_t)process_id);
        if (process && !has_mappings)
            scan_status(processes, process);
        else if (process && clock_monotonic_ns() < until_ns)
            processes_scan_process(processes, process);
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

/* Rescans /proc after lost events, rate-limited: a scan itself can cause losses and would otherwise
 * trigger itself endlessly. */
void processes_scan_after_loss(struct processes *processes, int64_t now_ns)
{
    struct err ignored;
    if (!processes->is_scan_due || now_ns < processes->next_all_ns)
        return;
    const int64_t begin_ns = clock_monotonic_ns();
    /* If /proc cannot be read, the known state stays. */
    if (scan_all(processes, !processes->options.has_targets, begin_ns + LOSS_SCAN_MAX_NS, &ignored))
        processes->counts.failed_scans++;
    processes->is_scan_due = false;
    const int64_t end_ns = clock_monotonic_ns(), pause_ns = LOSS_PAUSE_FACTOR * (end_ns - begin_ns);
    processes->next_all_ns = end_ns + (pause_ns > RESCAN_PAUSE_NS ? pause_ns : RESCAN_PAUSE_NS);
}

bool processes_has_no_threads(struct process *process, int64_t now_ns)
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
void processes_scan_waiting(struct processes *processes, int64_t now_ns)
{
    const int64_t until_ns = clock_monotonic_ns() + SWEEP_MAX_NS;
    bool has_time = now_ns >= processes->next_sweep_ns;
    for (uint32_t i = 0; i < PROCESSES_BUCKET_COUNT && has_time; i++) {
        processes->swept_bucket = (processes->swept_bucket + 1) % PROCESSES_BUCKET_COUNT;
        struct process *process = find_waiting(processes, processes->swept_bucket, now_ns);
        if (!process)
            continue;
        rescan_process(processes, process, &processes->next_sweep_ns);
        has_time = clock_monotonic_ns() < until_ns;
    }
}
