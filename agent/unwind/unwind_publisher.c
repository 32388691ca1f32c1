#include "agent/unwind/unwind_publisher.h"

#include "agent/interpreter/interpreter.h"
#include "agent/kernel/kernel_program.h"
#include "agent/process/binaries.h"
#include "agent/process/fair_quota.h"
#include "agent/process/proc_text.h"
#include "agent/process/process.h"
#include "agent/process/process_file.h"
#include "agent/process/procfs_file.h"
#include "agent/process/read_budget.h"
#include "agent/unwind/unwind_maps.h"
#include "agent/unwind/unwind_table.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    OWN_MAPS_MAX_BYTES = 4 << 20,
    VDSO_MAX_BYTES = 64 << 10,
    PLANNED_MAX = 64, /* files that are open at a time */
};

#define RETRY_NS (CLOCK_NS_PER_S / 10) /* the first time, then twice as long each time */
enum { RETRY_DOUBLINGS_MAX = 6, REFUSED_DOUBLINGS_MAX = 9, FAILURES_MAX = 10 };
/* Of a process with so many mappings a publication is large, and the one before is kept for a
 * while: together they shall not take much, however often it maps something. */
enum { LARGE_RUN = 1024, LARGE_PAUSE_NS = 20000 /* for each mapping */ };
#define LARGE_WAITING_MAX_BYTES (UINT64_C(16) << 20)
/* Of processor time: libLLVM's takes 27 ms, the largest browser's some 150. */
#define BUILD_MAX_NS CLOCK_NS_PER_S
#define BUILD_MAX_WALL_NS (3 * CLOCK_NS_PER_S) /* with what its disk takes */
#define LARGE_TABLE_BYTES (UINT64_C(1) << 20)
/* The last samples may lack a table or two when the agent is to stop. */
#define ENDING_NS (CLOCK_NS_PER_S / 2)
/* Of tables that nobody has: programs start again. Whose runs may still name one is published anew
 * by the shorter time. */
#define KEPT_UNUSED_NS (60 * CLOCK_NS_PER_S)
#define KEPT_UNUSED_SHORT_NS (5 * CLOCK_NS_PER_S)

enum table_state {
    TABLE_UNKNOWN,
    TABLE_PLANNED, /* has its place, and will have rows */
    TABLE_READY,
    TABLE_NONE, /* the file has no call frame information that can be read */
};

/* Of the binary of the same number, as long as it has the same serial. */
struct table {
    uint64_t serial;
    enum table_state state;
    struct unwind_table_ref ref;
    int fd;            /* PLANNED: its file, which its process may not live long enough to show */
    int64_t failed_ns; /* UNKNOWN: when it could not be opened */
    uint32_t failures; /* UNKNOWN: how often */
    uint64_t owner;    /* who brought it when it was counted (fair_quota.h); 0: it was not */
    bool is_refused;   /* there was no room for all of it, which is counted */
};

struct unwind_publisher {
    struct kernel_program *program;
    const struct binaries *binaries;
    struct interpreters *interpreters;
    struct unwind_maps *space;
    struct table *tables;
    uint32_t table_count;
    uint32_t planned[PLANNED_MAX]; /* numbers of their binaries, in the order of building */
    uint32_t planned_count;
    struct table vdso;
    struct process *waiting;
    bool is_closed; /* too little memory to build tables */
    uint64_t refused_tables;
    struct process *starved; /* to be tried again: no room, too soon, or a file that did not open */
    bool is_wanting;         /* so is the one that is being published */
    bool is_short;           /* something was without room in this second */
    uint64_t failed_tables;
    uint64_t refused_processes;
    struct unwind_publisher_host host;
    int64_t ending_ns; /* since when it is to end; 0: it is not */
};

/* ---- tables ---- */

static void note_failure(struct table *table)
{
    table->failed_ns = clock_monotonic_ns();
    table->failures++;
}

static bool may_try(const struct table *table)
{
    const uint32_t most = table->is_refused ? REFUSED_DOUBLINGS_MAX : RETRY_DOUBLINGS_MAX;
    const uint32_t doublings = table->failures < most ? table->failures : most;
    return table->failures == 0 || clock_monotonic_ns() - table->failed_ns >= RETRY_NS << doublings;
}

/* Once for each table, however often it is tried. */
static void note_refusal(struct unwind_publisher *publisher, struct table *table, const char *path)
{
    if (table->is_refused)
        return;
    table->is_refused = true;
    publisher->refused_tables++;
    if (publisher->host.on_refusal)
        publisher->host.on_refusal(publisher->host.context, path);
}

static uint32_t held_by(const struct unwind_publisher *publisher, uint64_t owner)
{
    uint32_t held = 0;
    for (uint32_t i = 0; owner && i < publisher->table_count; i++)
        held += publisher->tables[i].owner == owner ? publisher->tables[i].ref.chunk_count : 0;
    return held;
}

/* A place of so many chunks, as far as the owner of the process that brings the file may take them.
 */
static enum err_code reserve(struct unwind_publisher *publisher, uint64_t owner, uint64_t start,
                             uint32_t chunk_count, struct table *table, struct err *err)
{
    struct unwind_maps_stats stats;
    unwind_maps_stats_get(publisher->space, &stats);
    const bool is_counted = fair_quota_is_counted(stats.chunk_count, UNWIND_CHUNK_COUNT);
    table->owner = is_counted ? owner : 0;
    if (!fair_quota_allows(stats.chunk_count, UNWIND_CHUNK_COUNT, held_by(publisher, table->owner),
                           chunk_count))
        return err_set(err, ERR_LIMIT, "it has more than its share of %u chunks",
                       stats.chunk_count);
    return unwind_maps_reserve(publisher->space, owner, start, chunk_count, &table->ref, err);
}

/* Its place, from the file's headers alone; takes fd. */
static void plan(struct unwind_publisher *publisher, uint64_t owner, int fd, const char *path,
                 struct table *table)
{
    uint64_t start;
    uint32_t chunk_count;
    struct err ignored;
    enum err_code code = unwind_table_plan(fd, path, &start, &chunk_count, &ignored);
    if (!code && table->ref.chunk_count == 0)
        code = reserve(publisher, owner, start, chunk_count, table, &ignored);
    if (!code) {
        table->fd = fd;
        table->state = TABLE_PLANNED;
        return;
    }
    os_close(fd);
    if (code == ERR_LIMIT) { /* room may come */
        publisher->is_short = true;
        note_refusal(publisher, table, path);
        note_failure(table);
        return;
    }
    publisher->failed_tables++;
    table->state = TABLE_NONE;
}

static bool must_end(void *context)
{
    struct unwind_publisher *publisher = context;
    if (!publisher->host.is_ending || !publisher->host.is_ending(publisher->host.context))
        return false;
    const int64_t now_ns = clock_monotonic_ns();
    if (!publisher->ending_ns)
        publisher->ending_ns = now_ns;
    return now_ns - publisher->ending_ns >= ENDING_NS;
}

/* All processes that were told its place have it from then on. Handles: ERR_LIMIT (it stays
 * planned). */
static enum err_code build(struct unwind_publisher *publisher, const char *path,
                           struct table *table)
{
    struct unwind_table *built = NULL;
    struct err ignored;
    struct read_budget budget = {.end_cpu_ns = clock_thread_cpu_ns() + BUILD_MAX_NS,
                                 .end_wall_ns = clock_monotonic_ns() + BUILD_MAX_WALL_NS,
                                 .is_over = must_end,
                                 .context = publisher};
    enum err_code code = unwind_table_build(table->fd, path, &budget, &built, &ignored);
    if (!code)
        code =
            unwind_maps_fill(publisher->space, &table->ref, built, clock_monotonic_ns(), &ignored);
    const bool is_large = built && built->facts.bytes > LARGE_TABLE_BYTES;
    unwind_table_destroy(built);
    if (is_large) /* what building took is not needed soon, and counts against the memory limit */
        mem_trim();
    if (code == ERR_LIMIT) {
        note_refusal(publisher, table, path);
        return code;
    }
    if (!code && (budget.is_spent || unwind_maps_lack(publisher->space, &table->ref)))
        note_refusal(publisher, table, path);
    /* Without rows its place stays as it is: mappings name it. */
    table->state = code ? TABLE_NONE : TABLE_READY;
    publisher->failed_tables += code ? 1 : 0;
    os_close(table->fd);
    table->fd = -1;
    return ERR_NONE;
}

static void unplan(struct unwind_publisher *publisher, uint32_t binary)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < publisher->planned_count; i++) {
        if (publisher->planned[i] != binary)
            publisher->planned[kept++] = publisher->planned[i];
    }
    publisher->planned_count = kept;
}

/* Its binary is forgotten, and no mapping names it any more. */
static void drop_table(struct unwind_publisher *publisher, uint32_t binary)
{
    struct table *table = &publisher->tables[binary];
    if (table->state == TABLE_PLANNED) {
        unplan(publisher, binary);
        os_close(table->fd);
    }
    unwind_maps_remove_table(publisher->space, &table->ref, clock_monotonic_ns());
    *table = (struct table){.fd = -1};
}

/* One that is planned; false when that is not to be now. */
static bool build_planned(struct unwind_publisher *publisher, uint32_t number)
{
    if (publisher->is_closed || must_end(publisher))
        return false;
    const struct binary *binary = binaries_get(publisher->binaries, number);
    struct table *table = &publisher->tables[number];
    if (table->serial != binary->serial) {
        drop_table(publisher, number); /* it was forgotten meanwhile */
        return true;
    }
    unplan(publisher, number);
    if (build(publisher, binary->path, table)) {
        /* Others, or those of others, may have room: it comes again later and later. */
        os_close(table->fd);
        table->fd = -1;
        table->state = TABLE_UNKNOWN;
        publisher->is_short = true;
        note_failure(table);
    }
    return true;
}

static bool build_next(struct unwind_publisher *publisher)
{
    return publisher->planned_count && build_planned(publisher, publisher->planned[0]);
}

static struct table *place_of(struct unwind_publisher *publisher, uint32_t binary)
{
    if (binary >= publisher->table_count) {
        const uint32_t grown = binary < 64 ? 64 : 2 * binary;
        publisher->tables = mem_resize(publisher->tables, grown, sizeof(*publisher->tables));
        memset(&publisher->tables[publisher->table_count], 0,
               (grown - publisher->table_count) * sizeof(*publisher->tables));
        publisher->table_count = grown;
    }
    return &publisher->tables[binary];
}

static void open_and_plan(struct unwind_publisher *publisher, struct process *process,
                          const struct process_mapping *mapping, struct table *table)
{
    const struct binary *binary = binaries_get(publisher->binaries, mapping->binary);
    /* Where its code lies is not known before the file was read. */
    if (binary->file.segment_count == 0 || !may_try(table) ||
        (publisher->planned_count == PLANNED_MAX && !build_next(publisher)))
        return;
    const int fd = binaries_open(publisher->binaries, mapping->binary, process->shown_id,
                                 mapping->start, mapping->limit);
    if (fd >= 0)
        plan(publisher, process_owner(process), fd, binary->path, table);
    else if (!process_file_has_ended(process->shown_id)) /* the next one can show it */
        note_failure(table);
    if (table->state != TABLE_PLANNED)
        return;
    publisher->planned[publisher->planned_count++] = mapping->binary;
    publisher->refused_tables += publisher->is_closed && !table->is_refused;
    table->is_refused |= publisher->is_closed;
}

/* Shall a process that names it be published again in a second? Walks remember, so that it is
 * behind each filling of a table that lacks rules; of one that is planned it is not known if it
 * will. */
static bool is_wanted_again(const struct unwind_publisher *publisher, const struct table *table,
                            enum unwind_lack lack)
{
    const bool is_lacking = lack == UNWIND_LACKS_NOW || lack == UNWIND_LACKS_NO_MORE;
    switch (table->state) {
    case TABLE_UNKNOWN:
        return table->is_refused || table->failures < FAILURES_MAX;
    case TABLE_PLANNED:
        return is_lacking || !publisher->is_closed;
    case TABLE_READY:
        return is_lacking && table->failures < FAILURES_MAX;
    case TABLE_NONE:
        break;
    }
    return false;
}

static const struct table *table_of(struct unwind_publisher *publisher, struct process *process,
                                    const struct process_mapping *mapping)
{
    const struct binary *binary = binaries_get(publisher->binaries, mapping->binary);
    struct table *table = place_of(publisher, mapping->binary);
    if (table->serial != binary->serial)
        drop_table(publisher, mapping->binary);
    table->serial = binary->serial;
    const enum unwind_lack lack = unwind_maps_lack(publisher->space, &table->ref);
    if (table->state == TABLE_UNKNOWN ||
        (table->state == TABLE_READY && lack == UNWIND_LACKS_NO_MORE))
        open_and_plan(publisher, process, mapping, table);
    publisher->is_short |= lack == UNWIND_LACKS_NOW;
    publisher->is_wanting |=
        is_wanted_again(publisher, table, lack) && binary->file.segment_count > 0;
    return table;
}

/* ---- the vdso: one for all processes, and it has no file but our own memory ---- */

static bool find_own_vdso(struct proc_mapping *ret_mapping)
{
    struct err ignored;
    buf_auto text;
    buf_init(&text, OWN_MAPS_MAX_BYTES);
    if (procfs_file_read("/proc/self/maps", &text, &ignored))
        return false;
    struct span rest = buf_span(&text), line;
    while (span_take_line(&rest, &line)) {
        if (proc_text_mapping(line, ret_mapping) && span_equal_text(ret_mapping->path, "[vdso]"))
            return ret_mapping->limit - ret_mapping->start <= VDSO_MAX_BYTES;
    }
    return false;
}

static void build_vdso(struct unwind_publisher *publisher)
{
    struct proc_mapping own;
    publisher->vdso.state = TABLE_NONE;
    const int fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd < 0 || !find_own_vdso(&own) ||
        os_write_all(fd, (const void *)(uintptr_t)own.start, own.limit - own.start)) {
        os_close(fd);
        return;
    }
    plan(publisher, process_file_owner((uint32_t)getpid()), fd, "[vdso]", &publisher->vdso);
    if (publisher->vdso.state == TABLE_PLANNED && build(publisher, "[vdso]", &publisher->vdso))
        os_close(publisher->vdso.fd);
}

/* ---- life ---- */

struct unwind_publisher *unwind_publisher_create(struct kernel_program *program,
                                                 const struct unwind_memory *memory,
                                                 const struct binaries *binaries,
                                                 struct interpreters *interpreters)
{
    struct unwind_publisher *publisher = mem_new(struct unwind_publisher, 1);
    publisher->program = program;
    publisher->binaries = binaries;
    publisher->interpreters = interpreters;
    publisher->space = unwind_maps_create(memory);
    build_vdso(publisher);
    return publisher;
}

void unwind_publisher_set_host(struct unwind_publisher *publisher,
                               const struct unwind_publisher_host *host)
{
    publisher->host = *host;
}

void unwind_publisher_destroy(struct unwind_publisher *publisher)
{
    if (!publisher)
        return;
    for (uint32_t i = 0; i < publisher->planned_count; i++)
        os_close(publisher->tables[publisher->planned[i]].fd);
    unwind_maps_destroy(publisher->space);
    mem_free(publisher->tables);
    mem_free(publisher);
}

/* ---- processes ---- */

static void put_first(struct process **list, struct process *process)
{
    process->next_waiting = *list;
    *list = process;
}

static struct process *take_first(struct process **list)
{
    struct process *process = *list;
    *list = process->next_waiting;
    process->next_waiting = NULL;
    return process;
}

static void take_out(struct process **place, const struct process *process)
{
    while (*place && *place != process)
        place = &(*place)->next_waiting;
    if (*place)
        *place = process->next_waiting;
}

void unwind_publisher_note(struct unwind_publisher *publisher, struct process *process)
{
    if (process->is_waiting)
        return;
    if (process->is_starved)
        take_out(&publisher->starved, process);
    process->is_starved = false;
    process->is_waiting = true;
    put_first(&publisher->waiting, process);
}

static void starve(struct unwind_publisher *publisher, struct process *process)
{
    if (process->is_starved || process->is_waiting)
        return;
    process->is_starved = true;
    put_first(&publisher->starved, process);
}

static void drop_run(struct unwind_publisher *publisher, struct process *process)
{
    if (process->has_run)
        unwind_maps_drop_run(publisher->space, process->run_owner, &process->run,
                             clock_monotonic_ns());
    process->has_run = false;
    process->run = (struct unwind_run){0};
}

void unwind_publisher_forget(struct unwind_publisher *publisher, struct process *process)
{
    if (process->is_waiting)
        take_out(&publisher->waiting, process);
    if (process->is_starved)
        take_out(&publisher->starved, process);
    if (publisher->program)
        kernel_program_remove_process(publisher->program, process->process_id, &process->run);
    drop_run(publisher, process);
}

/* How the walk is to go through one mapping. */
static struct unwind_mapping describe(struct unwind_publisher *publisher, struct process *process,
                                      const struct process_mapping *mapping)
{
    struct unwind_mapping described = {.end = mapping->limit};
    const struct table *table = mapping->is_vdso ? &publisher->vdso : NULL;
    uint64_t address = mapping->file_offset;
    if (mapping->binary != BINARY_NONE) {
        table = table_of(publisher, process, mapping);
        address = binary_address(binaries_get(publisher->binaries, mapping->binary),
                                 mapping->file_offset);
    }
    if (!table || table->ref.chunk_count == 0) {
        described.flags = UNWIND_MAPPING_FP;
        return described;
    }
    described.bias = mapping->start - address + table->ref.start;
    described.first_chunk = table->ref.first_chunk;
    described.chunk_count = table->ref.chunk_count;
    return described;
}

static void publish(struct unwind_publisher *publisher, struct process *process)
{
    arena_auto arena = arena_create();
    const uint32_t count = process->mapping_count;
    uint64_t *starts = arena_new(arena, uint64_t, count);
    struct unwind_mapping *mappings = arena_new(arena, struct unwind_mapping, count);
    struct unwind_run run = {0};
    struct err ignored;
    publisher->is_wanting = false;
    interpreters_note(publisher->interpreters, process);
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = process->mappings[i].start;
        mappings[i] = describe(publisher, process, &process->mappings[i]);
    }
    const struct interpreter_process interpreter = interpreter_get(process->interpreter);
    const uint64_t owner =
        count && unwind_maps_is_counted(publisher->space) ? process_owner(process) : 0;
    const uint32_t dropped =
        process->has_run && process->run_owner == owner ? process->run.count : 0;
    /* Where there is no room, frame pointers are followed unchecked. */
    const enum err_code code = count ? unwind_maps_put_run(publisher->space, owner, dropped, starts,
                                                           mappings, count, &run, &ignored)
                                     : ERR_NONE;
    const bool has_run = count && !code;
    if (!has_run)
        run = (struct unwind_run){0};
    const bool is_told = !publisher->program ||
                         kernel_program_put_process(
                             publisher->program, process->process_id,
                             process->is_start_exact ? process->started_ns : 0, &run, &interpreter);
    const bool is_refused = code == ERR_LIMIT || !is_told;
    publisher->refused_processes += is_refused && !process->is_refused;
    process->is_refused = is_refused;
    drop_run(publisher, process);
    process->run = run;
    process->run_owner = owner;
    process->has_run = has_run;
    process->published_ns = clock_monotonic_ns();
    if (is_refused || (publisher->is_wanting && !process_has_ended(process)))
        starve(publisher, process);
}

static bool must_pause(const struct unwind_publisher *publisher, const struct process *process)
{
    struct unwind_maps_stats stats;
    const int64_t pause_ns = (int64_t)process->mapping_count * LARGE_PAUSE_NS;
    if (process->mapping_count < LARGE_RUN)
        return false;
    unwind_maps_stats_get(publisher->space, &stats);
    return stats.waiting_bytes > LARGE_WAITING_MAX_BYTES ||
           clock_monotonic_ns() - process->published_ns < pause_ns;
}

static void publish_noted(struct unwind_publisher *publisher, struct process *process)
{
    process->is_waiting = false;
    /* A thread of the kernel has no mappings and needs none. */
    if (must_pause(publisher, process))
        starve(publisher, process);
    else if (process->mapping_count || process->has_run)
        publish(publisher, process);
}

bool unwind_publisher_publish(struct unwind_publisher *publisher)
{
    if (!publisher->waiting)
        return build_next(publisher);
    publish_noted(publisher, take_first(&publisher->waiting));
    return true;
}

void unwind_publisher_publish_process(struct unwind_publisher *publisher, struct process *process)
{
    if (!process->is_waiting)
        return;
    take_out(&publisher->waiting, process);
    process->next_waiting = NULL;
    publish_noted(publisher, process);
}

void unwind_publisher_build_process(struct unwind_publisher *publisher,
                                    const struct process *process)
{
    for (uint32_t i = 0; publisher->planned_count && i < process->mapping_count; i++) {
        const uint32_t number = process->mappings[i].binary;
        if (number != BINARY_NONE && number < publisher->table_count &&
            publisher->tables[number].state == TABLE_PLANNED && !build_planned(publisher, number))
            return;
    }
}

static void make_room(struct unwind_publisher *publisher, int64_t now_ns)
{
    const bool is_short = publisher->is_short || unwind_maps_is_counted(publisher->space);
    const int64_t kept_ns = is_short ? KEPT_UNUSED_SHORT_NS : KEPT_UNUSED_NS;
    for (uint32_t i = 0; i < publisher->table_count; i++) {
        const struct table *table = &publisher->tables[i];
        if (!table->serial)
            continue;
        const int64_t unused_ns = binaries_unused_ns(publisher->binaries, i);
        if (unused_ns && now_ns - unused_ns > kept_ns)
            drop_table(publisher, i);
    }
    publisher->is_short = false;
}

void unwind_publisher_sweep(struct unwind_publisher *publisher, int64_t now_ns)
{
    make_room(publisher, now_ns);
    unwind_maps_reclaim(publisher->space, now_ns);
    while (publisher->starved) {
        struct process *process = take_first(&publisher->starved);
        process->is_starved = false;
        unwind_publisher_note(publisher, process);
    }
}

void unwind_publisher_close(struct unwind_publisher *publisher, bool is_closed)
{
    publisher->is_closed = is_closed;
}

void unwind_publisher_limit(struct unwind_publisher *publisher, uint64_t bytes)
{
    const uint64_t shards = bytes / UNWIND_SHARD_BYTES;
    const uint32_t limit = shards < UNWIND_SHARD_COUNT ? (uint32_t)shards : UNWIND_SHARD_COUNT;
    unwind_maps_limit_shards(publisher->space, limit ? limit : 1);
}

void unwind_publisher_count(const struct unwind_publisher *publisher,
                            struct unwind_publisher_counts *ret_counts)
{
    struct unwind_maps_stats stats;
    struct unwind_publisher_counts counts = {.failed_tables = publisher->failed_tables};
    unwind_maps_stats_get(publisher->space, &stats);
    for (uint32_t i = 0; i < publisher->table_count; i++)
        counts.tables += publisher->tables[i].state == TABLE_READY;
    counts.table_bytes = stats.used_bytes;
    counts.shard_bytes = stats.shard_bytes;
    counts.refused_tables = publisher->refused_tables;
    counts.refused = publisher->refused_processes;
    *ret_counts = counts;
}
