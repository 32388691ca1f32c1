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
#include "lib/base/vec.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    OWN_MAPS_MAX_BYTES = 4 << 20,
    VDSO_MAX_BYTES = 64 << 10,
    PLANNED_MAX = 64, /* each holds an open file */
};

/*
 * The state of a table. The events are: table_of(), while a process that maps the binary is
 * published; build_planned(), for one planned table at a time; make_room(), once a second.
 *
 *   state    event                                                  next state
 *   -------  -----------------------------------------------------  ----------------------------
 *   UNKNOWN  table_of: before the retry time (may_try)              UNKNOWN
 *            table_of: the file does not open                       UNKNOWN, failures + 1
 *            table_of: no room for a place, or above the quota      UNKNOWN, failures + 1, refused
 *            table_of: no call frame information                    NONE
 *            table_of: a place is reserved                          PLANNED, holds fd
 *   PLANNED  build_planned: paused, or the agent is about to stop   PLANNED
 *            build_planned: no room for the rows                    UNKNOWN, failures + 1, refused;
 *                                                                   the place stays reserved
 *            build_planned: the file turns out to be unreadable     NONE; the place stays reserved
 *            build_planned: filled                                  READY; refused if rules or
 *                                                                   build time were short
 *   READY    table_of: rules were missing and fit now               PLANNED with the old place;
 *                                                                   READY if the file does not open
 *   NONE     -                                                      NONE
 *   any      the number has another binary (serial) by now          UNKNOWN, place removed
 *            make_room: unmapped for 60 s (5 s if room is short)    UNKNOWN, place removed
 *
 * The retry time doubles with each failure from 0.1 s to 6.4 s, or to 51.2 s once the table was
 * refused.
 *
 * The state of a process: idle, queued, or retry queued.
 *
 *   state         event                                             next state
 *   ------------  ------------------------------------------------  ----------------------------
 *   idle          unwind_publisher_enqueue: mappings have changed   queued
 *   queued        must_pause: many mappings, published just before  retry queued
 *                 publish: no room for the run, or may_improve()    retry queued
 *                   holds for a table of a process that runs
 *                 publish: otherwise                                idle
 *   retry queued  unwind_publisher_enqueue                          queued
 *                 sweep, once a second                              queued
 */
enum table_state {
    TABLE_UNKNOWN,
    TABLE_PLANNED, /* its place is reserved; rows will follow */
    TABLE_READY,
    TABLE_NONE, /* the file has no readable call frame information */
};

#define RETRY_NS (CLOCK_NS_PER_S / 10) /* after the first failure */
enum { RETRY_DOUBLINGS_MAX = 6, REFUSED_DOUBLINGS_MAX = 9, FAILURES_MAX = 10 };
/* The run of a process with many mappings is large, and the previous one stays allocated for a
 * while. A pause in proportion to the size bounds both together, however often the process maps
 * something: a program that mapped 50,000 pieces one by one took 427 MB without it. */
enum { LARGE_RUN = 1024, LARGE_PAUSE_NS = 20000 /* per mapping */ };
#define LARGE_WAITING_MAX_BYTES (UINT64_C(16) << 20)
/* Processor time: libLLVM's table takes 27 ms, that of the largest browser about 150. */
#define BUILD_MAX_NS CLOCK_NS_PER_S
#define BUILD_MAX_WALL_NS (3 * CLOCK_NS_PER_S) /* includes waiting for the disk */
#define LARGE_TABLE_BYTES (UINT64_C(1) << 20)
/* When the agent is about to stop, the last samples do without tables that are not built by then.
 */
#define ENDING_NS (CLOCK_NS_PER_S / 2)
/* Unused tables are kept because programs are often started again. The shorter time applies while
 * room is short; it is still longer than the second after which a process whose run may refer to
 * the table is published again. */
#define KEPT_UNUSED_NS (60 * CLOCK_NS_PER_S)
#define KEPT_UNUSED_SHORT_NS (5 * CLOCK_NS_PER_S)

/* The table of the binary with the same number, as long as that has the same serial. */
struct table {
    uint64_t serial;
    enum table_state state;
    struct unwind_table_ref ref;
    int fd; /* PLANNED: the file, kept open because its process may end before the build */
    int64_t failed_ns; /* time of the last failure */
    uint32_t failures;
    uint64_t owner;  /* the quota (fair_quota.h) that its chunks count against; 0: none */
    bool is_refused; /* there was no room for all of it; counted once */
};

struct unwind_publisher {
    struct kernel_program *program;
    const struct binaries *binaries;
    struct interpreters *interpreters;
    struct unwind_maps *maps;
    struct table *tables;
    uint32_t table_count;
    uint32_t planned[PLANNED_MAX]; /* binaries of planned tables, in the order of building */
    uint32_t planned_count;
    struct table vdso;
    struct process *queue;       /* to be published */
    struct process *retry_queue; /* to be queued again by the next sweep */
    bool needs_retry;            /* of the process that is being published */
    bool is_paused;              /* too little memory to build tables */
    bool is_room_short;          /* something had no room since the last sweep */
    uint64_t refused_tables;
    uint64_t failed_tables;
    uint64_t refused_processes;
    struct unwind_publisher_host host;
    int64_t ending_ns; /* when the agent was first seen to be about to stop; 0: it is not */
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

/* Counts and reports a table once, however often it is tried. */
static void note_refusal(struct unwind_publisher *publisher, struct table *table, const char *path)
{
    if (table->is_refused)
        return;
    table->is_refused = true;
    publisher->refused_tables++;
    if (publisher->host.on_refusal)
        publisher->host.on_refusal(publisher->host.context, path);
}

static uint32_t count_held_chunks(const struct unwind_publisher *publisher, uint64_t owner)
{
    uint32_t held = 0;
    for (uint32_t i = 0; owner && i < publisher->table_count; i++)
        held += publisher->tables[i].owner == owner ? publisher->tables[i].ref.chunk_count : 0;
    return held;
}

/* Reserves the place of a table, if the owner's quota of chunks allows it. */
static enum err_code reserve_place(struct unwind_publisher *publisher, uint64_t owner,
                                   uint64_t start, uint32_t chunk_count, struct table *table,
                                   struct err *err)
{
    struct unwind_maps_stats stats;
    unwind_maps_stats_get(publisher->maps, &stats);
    const bool is_counted = fair_quota_is_counted(stats.chunk_count, UNWIND_CHUNK_COUNT);
    table->owner = is_counted ? owner : 0;
    if (!fair_quota_allows(stats.chunk_count, UNWIND_CHUNK_COUNT,
                           count_held_chunks(publisher, table->owner), chunk_count))
        return err_set(err, ERR_LIMIT, "its owner exceeds its quota of %u chunks",
                       stats.chunk_count);
    return unwind_maps_reserve(publisher->maps, owner, start, chunk_count, &table->ref, err);
}

/* Reserves the place of a table, whose size follows from the file's headers. Takes fd over. */
static void plan_table(struct unwind_publisher *publisher, uint64_t owner, int fd, const char *path,
                       struct table *table)
{
    uint64_t start;
    uint32_t chunk_count;
    struct err ignored;
    enum err_code code = unwind_table_plan(fd, path, &start, &chunk_count, &ignored);
    if (!code && table->ref.chunk_count == 0)
        code = reserve_place(publisher, owner, start, chunk_count, table, &ignored);
    if (!code) {
        table->fd = fd;
        table->state = TABLE_PLANNED;
        return;
    }
    os_close(fd);
    if (code == ERR_LIMIT) { /* there may be room later */
        publisher->is_room_short = true;
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

/* Builds a planned table in its place, so that all runs that refer to the place have it. Handles:
 * ERR_LIMIT (no room; the state and the file stay as they are). */
static enum err_code build_table(struct unwind_publisher *publisher, const char *path,
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
            unwind_maps_fill(publisher->maps, &table->ref, built, clock_monotonic_ns(), &ignored);
    const bool is_large = built && built->facts.bytes > LARGE_TABLE_BYTES;
    unwind_table_destroy(built);
    if (is_large) /* the memory that the build used counts against the memory limit */
        mem_trim();
    if (code == ERR_LIMIT) {
        note_refusal(publisher, table, path);
        return code;
    }
    if (!code && (budget.is_spent ||
                  unwind_maps_rules_state(publisher->maps, &table->ref) != UNWIND_RULES_COMPLETE))
        note_refusal(publisher, table, path);
    /* A place without rows stays reserved, because runs refer to it. */
    table->state = code ? TABLE_NONE : TABLE_READY;
    publisher->failed_tables += code ? 1 : 0;
    os_close(table->fd);
    table->fd = -1;
    return ERR_NONE;
}

static void remove_planned(struct unwind_publisher *publisher, uint32_t binary)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < publisher->planned_count; i++) {
        if (publisher->planned[i] != binary)
            publisher->planned[kept++] = publisher->planned[i];
    }
    publisher->planned_count = kept;
}

/* The binary was freed, so no mapping refers to the table any more. */
static void drop_table(struct unwind_publisher *publisher, uint32_t binary)
{
    struct table *table = &publisher->tables[binary];
    if (table->state == TABLE_PLANNED) {
        remove_planned(publisher, binary);
        os_close(table->fd);
    }
    unwind_maps_remove_table(publisher->maps, &table->ref, clock_monotonic_ns());
    *table = (struct table){.fd = -1};
}

/* Builds a planned table. False: no table may be built now. */
static bool build_planned(struct unwind_publisher *publisher, uint32_t number)
{
    if (publisher->is_paused || must_end(publisher))
        return false;
    const struct binary *binary = binaries_get(publisher->binaries, number);
    struct table *table = &publisher->tables[number];
    if (table->serial != binary->serial) {
        drop_table(publisher, number); /* the number has another binary by now */
        return true;
    }
    remove_planned(publisher, number);
    if (build_table(publisher, binary->path, table)) {
        /* Other tables may fit, so this one leaves the list of planned ones and is tried again
         * later. */
        os_close(table->fd);
        table->fd = -1;
        table->state = TABLE_UNKNOWN;
        publisher->is_room_short = true;
        note_failure(table);
    }
    return true;
}

static bool build_next(struct unwind_publisher *publisher)
{
    return publisher->planned_count && build_planned(publisher, publisher->planned[0]);
}

static struct table *get_slot(struct unwind_publisher *publisher, uint32_t binary)
{
    vec_reserve_zeroed(publisher->tables, publisher->table_count, (size_t)binary + 1);
    return &publisher->tables[binary];
}

static void open_and_plan(struct unwind_publisher *publisher, struct process *process,
                          const struct process_mapping *mapping, struct table *table)
{
    const struct binary *binary = binaries_get(publisher->binaries, mapping->binary);
    /* The addresses of the code are not known before the file was read. */
    if (binary->file.segment_count == 0 || !may_try(table) ||
        (publisher->planned_count == PLANNED_MAX && !build_next(publisher)))
        return;
    const int fd = binaries_open(publisher->binaries, mapping->binary, process->shown_id,
                                 mapping->start, mapping->limit);
    if (fd >= 0)
        plan_table(publisher, process_owner(process), fd, binary->path, table);
    else if (!process_file_has_ended(process->shown_id)) /* another process may still show it */
        note_failure(table);
    if (table->state != TABLE_PLANNED)
        return;
    publisher->planned[publisher->planned_count++] = mapping->binary;
    publisher->refused_tables += publisher->is_paused && !table->is_refused;
    table->is_refused |= publisher->is_paused;
}

/*
 * Whether a process that maps the table is to be published again in a second, because the table may
 * change until then.
 *
 * Filling a reserved place reaches all runs that refer to it, but the unwinder remembers rules of
 * callers by the number of the run (struct unwind_memo). After a table with missing rules was
 * filled again, only a new run gets the new rules. Whether a planned table will miss rules is not
 * known, so it counts as one that may.
 */
static bool may_improve(const struct unwind_publisher *publisher, const struct table *table,
                        enum unwind_rules_state rules)
{
    const bool are_rules_missing = rules == UNWIND_RULES_NO_ROOM || rules == UNWIND_RULES_FIT_NOW;
    switch (table->state) {
    case TABLE_UNKNOWN:
        return table->is_refused || table->failures < FAILURES_MAX;
    case TABLE_PLANNED:
        return are_rules_missing || !publisher->is_paused;
    case TABLE_READY:
        return are_rules_missing && table->failures < FAILURES_MAX;
    case TABLE_NONE:
        break;
    }
    return false;
}

static const struct table *table_of(struct unwind_publisher *publisher, struct process *process,
                                    const struct process_mapping *mapping)
{
    const struct binary *binary = binaries_get(publisher->binaries, mapping->binary);
    struct table *table = get_slot(publisher, mapping->binary);
    if (table->serial != binary->serial)
        drop_table(publisher, mapping->binary);
    table->serial = binary->serial;
    const enum unwind_rules_state rules = unwind_maps_rules_state(publisher->maps, &table->ref);
    if (table->state == TABLE_UNKNOWN ||
        (table->state == TABLE_READY && rules == UNWIND_RULES_FIT_NOW))
        open_and_plan(publisher, process, mapping, table);
    publisher->is_room_short |= rules == UNWIND_RULES_NO_ROOM;
    publisher->needs_retry |=
        may_improve(publisher, table, rules) && binary->file.segment_count > 0;
    return table;
}

/* ---- the vDSO: all processes have the same, and it is read from our own memory ---- */

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
    plan_table(publisher, process_file_owner((uint32_t)getpid()), fd, "[vdso]", &publisher->vdso);
    if (publisher->vdso.state == TABLE_PLANNED &&
        build_table(publisher, "[vdso]", &publisher->vdso))
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
    publisher->maps = unwind_maps_create(memory);
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
    unwind_maps_destroy(publisher->maps);
    mem_free(publisher->tables);
    mem_free(publisher);
}

/* ---- processes ---- */

static void push_process(struct process **queue, struct process *process)
{
    process->next_queued = *queue;
    *queue = process;
}

static struct process *pop_process(struct process **queue)
{
    struct process *process = *queue;
    *queue = process->next_queued;
    process->next_queued = NULL;
    return process;
}

static void remove_from_queue(struct process **place, const struct process *process)
{
    while (*place && *place != process)
        place = &(*place)->next_queued;
    if (*place)
        *place = process->next_queued;
}

void unwind_publisher_enqueue(struct unwind_publisher *publisher, struct process *process)
{
    if (process->is_queued)
        return;
    if (process->is_retry_queued)
        remove_from_queue(&publisher->retry_queue, process);
    process->is_retry_queued = false;
    process->is_queued = true;
    push_process(&publisher->queue, process);
}

static void queue_retry(struct unwind_publisher *publisher, struct process *process)
{
    if (process->is_retry_queued || process->is_queued)
        return;
    process->is_retry_queued = true;
    push_process(&publisher->retry_queue, process);
}

static void drop_run(struct unwind_publisher *publisher, struct process *process)
{
    if (process->has_run)
        unwind_maps_drop_run(publisher->maps, process->run_owner, &process->run,
                             clock_monotonic_ns());
    process->has_run = false;
    process->run = (struct unwind_run){0};
}

void unwind_publisher_forget(struct unwind_publisher *publisher, struct process *process)
{
    if (process->is_queued)
        remove_from_queue(&publisher->queue, process);
    if (process->is_retry_queued)
        remove_from_queue(&publisher->retry_queue, process);
    if (publisher->program)
        kernel_program_remove_process(publisher->program, process->process_id, &process->run);
    drop_run(publisher, process);
}

/* How the unwinder treats one mapping: by which table, or by frame pointers. */
static struct unwind_mapping describe_mapping(struct unwind_publisher *publisher,
                                              struct process *process,
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

static void publish_process(struct unwind_publisher *publisher, struct process *process)
{
    arena_auto arena = arena_create();
    const uint32_t count = process->mapping_count;
    uint64_t *starts = arena_new(arena, uint64_t, count);
    struct unwind_mapping *mappings = arena_new(arena, struct unwind_mapping, count);
    struct unwind_run run = {0};
    struct err ignored;
    publisher->needs_retry = false;
    interpreters_note(publisher->interpreters, process);
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = process->mappings[i].start;
        mappings[i] = describe_mapping(publisher, process, &process->mappings[i]);
    }
    const struct interpreter_process interpreter = interpreter_get(process->interpreter);
    const uint64_t owner =
        count && unwind_maps_is_counted(publisher->maps) ? process_owner(process) : 0;
    const uint32_t dropped =
        process->has_run && process->run_owner == owner ? process->run.count : 0;
    /* Without a run the unwinder follows frame pointers without checking them. */
    const enum err_code code = count ? unwind_maps_put_run(publisher->maps, owner, dropped, starts,
                                                           mappings, count, &run, &ignored)
                                     : ERR_NONE;
    const bool has_run = count && !code;
    if (!has_run)
        run = (struct unwind_run){0};
    const bool is_published =
        !publisher->program ||
        kernel_program_put_process(publisher->program, process->process_id,
                                   process->is_start_exact ? process->started_ns : 0, &run,
                                   &interpreter);
    const bool is_refused = code == ERR_LIMIT || !is_published;
    publisher->refused_processes += is_refused && !process->is_run_refused;
    process->is_run_refused = is_refused;
    drop_run(publisher, process);
    process->run = run;
    process->run_owner = owner;
    process->has_run = has_run;
    process->published_ns = clock_monotonic_ns();
    if (is_refused || (publisher->needs_retry && !process_has_ended(process)))
        queue_retry(publisher, process);
}

static bool must_pause(const struct unwind_publisher *publisher, const struct process *process)
{
    struct unwind_maps_stats stats;
    const int64_t pause_ns = (int64_t)process->mapping_count * LARGE_PAUSE_NS;
    if (process->mapping_count < LARGE_RUN)
        return false;
    unwind_maps_stats_get(publisher->maps, &stats);
    return stats.waiting_bytes > LARGE_WAITING_MAX_BYTES ||
           clock_monotonic_ns() - process->published_ns < pause_ns;
}

static void publish_unless_paused(struct unwind_publisher *publisher, struct process *process)
{
    process->is_queued = false;
    /* A kernel thread has no mappings and needs no run. */
    if (must_pause(publisher, process))
        queue_retry(publisher, process);
    else if (process->mapping_count || process->has_run)
        publish_process(publisher, process);
}

bool unwind_publisher_publish(struct unwind_publisher *publisher)
{
    if (!publisher->queue)
        return build_next(publisher);
    publish_unless_paused(publisher, pop_process(&publisher->queue));
    return true;
}

void unwind_publisher_publish_process(struct unwind_publisher *publisher, struct process *process)
{
    if (!process->is_queued)
        return;
    remove_from_queue(&publisher->queue, process);
    process->next_queued = NULL;
    publish_unless_paused(publisher, process);
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
    const bool is_short = publisher->is_room_short || unwind_maps_is_counted(publisher->maps);
    const int64_t kept_ns = is_short ? KEPT_UNUSED_SHORT_NS : KEPT_UNUSED_NS;
    for (uint32_t i = 0; i < publisher->table_count; i++) {
        const struct table *table = &publisher->tables[i];
        if (!table->serial)
            continue;
        const int64_t unused_ns = binaries_unused_ns(publisher->binaries, i);
        if (unused_ns && now_ns - unused_ns > kept_ns)
            drop_table(publisher, i);
    }
    publisher->is_room_short = false;
}

void unwind_publisher_sweep(struct unwind_publisher *publisher, int64_t now_ns)
{
    make_room(publisher, now_ns);
    unwind_maps_reclaim(publisher->maps, now_ns);
    while (publisher->retry_queue) {
        struct process *process = pop_process(&publisher->retry_queue);
        process->is_retry_queued = false;
        unwind_publisher_enqueue(publisher, process);
    }
}

void unwind_publisher_pause(struct unwind_publisher *publisher, bool is_paused)
{
    publisher->is_paused = is_paused;
}

void unwind_publisher_limit(struct unwind_publisher *publisher, uint64_t bytes)
{
    const uint64_t shards = bytes / UNWIND_SHARD_BYTES;
    const uint32_t limit = shards < UNWIND_SHARD_COUNT ? (uint32_t)shards : UNWIND_SHARD_COUNT;
    unwind_maps_limit_shards(publisher->maps, limit ? limit : 1);
}

void unwind_publisher_count(const struct unwind_publisher *publisher,
                            struct unwind_publisher_counts *ret_counts)
{
    struct unwind_maps_stats stats;
    struct unwind_publisher_counts counts = {.failed_tables = publisher->failed_tables};
    unwind_maps_stats_get(publisher->maps, &stats);
    for (uint32_t i = 0; i < publisher->table_count; i++)
        counts.tables += publisher->tables[i].state == TABLE_READY;
    counts.table_bytes = stats.used_bytes;
    counts.shard_bytes = stats.shard_bytes;
    counts.refused_tables = publisher->refused_tables;
    counts.refused = publisher->refused_processes;
    *ret_counts = counts;
}
