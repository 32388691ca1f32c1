#include "agent/unwind/table_builder.h"

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
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
    OWN_MAPS_MAX_BYTES = 4 << 20,
    VDSO_MAX_BYTES = 64 << 10,
    PLANNED_MAX = 64, /* each holds an open file */
};

/*
 * The state of a table. The events are: table_builder_request(), while a process that maps the
 * binary is published; build_planned(), for one planned table at a time; table_builder_sweep(),
 * once a second.
 *
 *   state    event                                                  next state
 *   -------  -----------------------------------------------------  ----------------------------
 *   UNKNOWN  request: before the retry time (may_try)              UNKNOWN
 *            request: the file does not open, and the process      UNKNOWN, failures + 1
 *            that maps it still runs
 *            request: no space for its chunks, or above the quota  UNKNOWN, failures + 1, refused
 *            request: no call frame information                    NONE
 *            request: its chunks are reserved                      PLANNED, holds fd
 *   PLANNED  build_planned: paused, or the agent is about to stop   PLANNED
 *            build_planned: no space for the rows                   UNKNOWN, failures + 1, refused;
 *                                                                   the chunks stay reserved
 *            build_planned: the file turns out to be unreadable     NONE; the chunks stay reserved
 *            build_planned: filled                                  READY; refused if rules or
 *                                                                   build time were short
 *   READY    request: rules were missing and fit now                PLANNED with the old chunks
 *            and the file does not open                             READY
 *            and the file is unreadable                             NONE
 *   NONE     -                                                      NONE
 *   any      the number has another binary (serial) by now          UNKNOWN, chunks removed
 *            sweep: unmapped for 60 s (5 s if space is short)       UNKNOWN, chunks removed
 *
 * The retry time doubles with each failure, from 0.2 s after the first to 6.4 s, or to 51.2 s once
 * the table was refused.
 */
enum table_state {
    TABLE_UNKNOWN,
    TABLE_PLANNED, /* its chunks are reserved; rows will follow */
    TABLE_READY,
    TABLE_NONE, /* the file has no readable call frame information */
};

#define RETRY_NS (CLOCK_NS_PER_S / 10) /* doubled by each failure, also by the first */
enum {
    RETRY_DOUBLINGS_MAX = 6,
    REFUSED_DOUBLINGS_MAX = 9,
    FAILURES_MAX = 10, /* then processes are no longer published again for the table */
};
/* CPU time: libLLVM's table takes 27 ms, that of the largest browser about 150. */
#define BUILD_MAX_NS CLOCK_NS_PER_S
#define BUILD_MAX_WALL_NS (3 * CLOCK_NS_PER_S) /* includes waiting for the disk */
#define LARGE_TABLE_BYTES (UINT64_C(1) << 20)
/* When the agent is about to stop, the last samples do without tables that are not built by then.
 */
#define ENDING_NS (CLOCK_NS_PER_S / 2)
/* Unused tables are kept because programs are often started again. The shorter time applies while
 * space is short; it is still longer than the second after which a process whose mapping list may
 * refer to the table is published again. */
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
    bool is_refused; /* there was no space for all of it; counted once */
};

struct table_builder {
    struct unwind_maps *maps;
    const struct binaries *binaries;
    struct table *tables; /* by number of the binary */
    uint32_t table_count;
    uint32_t planned[PLANNED_MAX]; /* binaries of planned tables, in the order of building */
    uint32_t planned_count;
    struct table vdso;
    bool is_paused;      /* too little memory to build tables */
    bool is_space_short; /* something had no space since the last sweep */
    uint64_t refused;
    uint64_t failed;
    struct table_builder_host host;
    int64_t ending_ns; /* when the agent was first seen to be about to stop; 0: it is not */
};

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
static void note_refusal(struct table_builder *builder, struct table *table, const char *path)
{
    if (table->is_refused)
        return;
    table->is_refused = true;
    builder->refused++;
    if (builder->host.on_refusal)
        builder->host.on_refusal(builder->host.context, path);
}

static uint32_t count_held_chunks(const struct table_builder *builder, uint64_t owner)
{
    uint32_t held = 0;
    for (uint32_t i = 0; owner && i < builder->table_count; i++)
        held += builder->tables[i].owner == owner ? builder->tables[i].ref.chunk_count : 0;
    return held;
}

/* Reserves the chunks of a table, if the owner's quota allows it. */
static enum err_code reserve_chunks(struct table_builder *builder, uint64_t owner, uint64_t start,
                                    uint32_t chunk_count, struct table *table, struct err *err)
{
    struct unwind_maps_stats stats;
    unwind_maps_stats_get(builder->maps, &stats);
    const bool is_counted = fair_quota_is_counted(stats.chunk_count, UNWIND_CHUNK_COUNT);
    table->owner = is_counted ? owner : 0;
    if (!fair_quota_allows(stats.chunk_count, UNWIND_CHUNK_COUNT,
                           count_held_chunks(builder, table->owner), chunk_count))
        return err_set(err, ERR_LIMIT, "its owner exceeds its quota of %u chunks",
                       stats.chunk_count);
    return unwind_maps_reserve(builder->maps, owner, start, chunk_count, &table->ref, err);
}

/* Plans a table: reserves its chunks, whose number follows from the file's headers. Takes fd over.
 */
static void plan_table(struct table_builder *builder, uint64_t owner, int fd, const char *path,
                       struct table *table)
{
    uint64_t start;
    uint32_t chunk_count;
    struct err ignored;
    enum err_code code = unwind_table_plan(fd, path, &start, &chunk_count, &ignored);
    if (!code && table->ref.chunk_count == 0)
        code = reserve_chunks(builder, owner, start, chunk_count, table, &ignored);
    if (!code) {
        table->fd = fd;
        table->state = TABLE_PLANNED;
        return;
    }
    os_close(fd);
    if (code == ERR_LIMIT) { /* there may be space later */
        builder->is_space_short = true;
        note_refusal(builder, table, path);
        note_failure(table);
        return;
    }
    builder->failed++;
    table->state = TABLE_NONE;
}

static bool must_end(void *context)
{
    struct table_builder *builder = context;
    if (!builder->host.is_ending || !builder->host.is_ending(builder->host.context))
        return false;
    const int64_t now_ns = clock_monotonic_ns();
    if (!builder->ending_ns)
        builder->ending_ns = now_ns;
    return now_ns - builder->ending_ns >= ENDING_NS;
}

/* Builds a planned table in its reserved chunks, so that all mapping lists that refer to them have
 * it. Errors: ERR_LIMIT (no space; the state and the file stay as they are). */
static enum err_code build_table(struct table_builder *builder, const char *path,
                                 struct table *table)
{
    struct unwind_table *built = NULL;
    struct err ignored;
    struct read_budget budget = {.end_cpu_ns = clock_thread_cpu_ns() + BUILD_MAX_NS,
                                 .end_wall_ns = clock_monotonic_ns() + BUILD_MAX_WALL_NS,
                                 .is_over = must_end,
                                 .context = builder};
    enum err_code code = unwind_table_build(table->fd, path, &budget, &built, &ignored);
    if (!code)
        code = unwind_maps_fill(builder->maps, &table->ref, built, clock_monotonic_ns(), &ignored);
    const bool is_large = built && built->facts.bytes > LARGE_TABLE_BYTES;
    unwind_table_destroy(built);
    if (is_large) /* the memory that the build used counts against the memory limit */
        mem_trim();
    if (code == ERR_LIMIT) {
        note_refusal(builder, table, path);
        return code;
    }
    if (!code && (budget.is_spent ||
                  unwind_maps_rules_state(builder->maps, &table->ref) != UNWIND_RULES_COMPLETE))
        note_refusal(builder, table, path);
    /* Chunks without rows stay reserved, because mapping lists refer to them. */
    table->state = code ? TABLE_NONE : TABLE_READY;
    builder->failed += code ? 1 : 0;
    os_close(table->fd);
    table->fd = -1;
    return ERR_NONE;
}

static void remove_planned(struct table_builder *builder, uint32_t binary)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < builder->planned_count; i++) {
        if (builder->planned[i] != binary)
            builder->planned[kept++] = builder->planned[i];
    }
    builder->planned_count = kept;
}

/* The binary was freed, so no mapping refers to the table any more. */
static void drop_table(struct table_builder *builder, uint32_t binary)
{
    struct table *table = &builder->tables[binary];
    if (table->state == TABLE_PLANNED) {
        remove_planned(builder, binary);
        os_close(table->fd);
    }
    unwind_maps_remove_table(builder->maps, &table->ref, clock_monotonic_ns());
    *table = (struct table){.fd = -1};
}

/* Builds a planned table. False: no table may be built now. */
static bool build_planned(struct table_builder *builder, uint32_t number)
{
    if (builder->is_paused || must_end(builder))
        return false;
    const struct binary *binary = binaries_get(builder->binaries, number);
    struct table *table = &builder->tables[number];
    if (table->serial != binary->serial) {
        drop_table(builder, number); /* the number has another binary by now */
        return true;
    }
    remove_planned(builder, number);
    if (build_table(builder, binary->path, table)) {
        /* Other tables may fit, so this one leaves the list of planned ones and is tried again
         * later. */
        os_close(table->fd);
        table->fd = -1;
        table->state = TABLE_UNKNOWN;
        builder->is_space_short = true;
        note_failure(table);
    }
    return true;
}

bool table_builder_build_next(struct table_builder *builder)
{
    return builder->planned_count && build_planned(builder, builder->planned[0]);
}

static struct table *get_slot(struct table_builder *builder, uint32_t binary)
{
    vec_reserve_zeroed(builder->tables, builder->table_count, (size_t)binary + 1);
    return &builder->tables[binary];
}

static void open_and_plan(struct table_builder *builder, struct process *process,
                          const struct process_mapping *mapping, struct table *table)
{
    const struct binary *binary = binaries_get(builder->binaries, mapping->binary);
    /* The addresses of the code are not known before the file was read. */
    if (binary->file.segment_count == 0 || !may_try(table) ||
        (builder->planned_count == PLANNED_MAX && !table_builder_build_next(builder)))
        return;
    const int fd = binaries_open(builder->binaries, mapping->binary, process->shown_id,
                                 mapping->start, mapping->limit);
    if (fd >= 0)
        plan_table(builder, process_owner(process), fd, binary->path, table);
    else if (!process_file_has_ended(process->shown_id)) /* another process may still show it */
        note_failure(table);
    if (table->state != TABLE_PLANNED)
        return;
    builder->planned[builder->planned_count++] = mapping->binary;
    builder->refused += builder->is_paused && !table->is_refused;
    table->is_refused |= builder->is_paused;
}

/*
 * Returns whether a process that maps the table is to be published again in a second, because the
 * table may change until then.
 *
 * Filling reserved chunks affects all mapping lists that refer to them, but the unwinder remembers
 * rules of callers by the generation of the list (struct unwind_memo). After a table with missing
 * rules was filled again, only a new list gets the new rules. Whether a planned table will miss
 * rules is not known, so it counts as one that may.
 */
static bool may_improve(const struct table_builder *builder, const struct table *table,
                        enum unwind_rules_state rules)
{
    const bool are_rules_missing = rules == UNWIND_RULES_NO_SPACE || rules == UNWIND_RULES_FIT_NOW;
    switch (table->state) {
    case TABLE_UNKNOWN:
        return table->is_refused || table->failures < FAILURES_MAX;
    case TABLE_PLANNED:
        return are_rules_missing || !builder->is_paused;
    case TABLE_READY:
        return are_rules_missing && table->failures < FAILURES_MAX;
    case TABLE_NONE:
        break;
    }
    return false;
}

const struct unwind_table_ref *table_builder_request(struct table_builder *builder,
                                                     struct process *process,
                                                     const struct process_mapping *mapping,
                                                     bool *needs_retry)
{
    const struct binary *binary = binaries_get(builder->binaries, mapping->binary);
    struct table *table = get_slot(builder, mapping->binary);
    if (table->serial != binary->serial)
        drop_table(builder, mapping->binary);
    table->serial = binary->serial;
    const enum unwind_rules_state rules = unwind_maps_rules_state(builder->maps, &table->ref);
    if (table->state == TABLE_UNKNOWN ||
        (table->state == TABLE_READY && rules == UNWIND_RULES_FIT_NOW))
        open_and_plan(builder, process, mapping, table);
    builder->is_space_short |= rules == UNWIND_RULES_NO_SPACE;
    *needs_retry |= may_improve(builder, table, rules) && binary->file.segment_count > 0;
    return &table->ref;
}

/* ---- the vDSO, which is the same in all processes and is read from our own memory ---- */

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

static void build_vdso(struct table_builder *builder)
{
    struct proc_mapping own;
    builder->vdso.state = TABLE_NONE;
    const int fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd < 0 || !find_own_vdso(&own) ||
        os_write_all(fd, (const void *)(uintptr_t)own.start, own.limit - own.start)) {
        os_close(fd);
        return;
    }
    plan_table(builder, process_file_owner((uint32_t)getpid()), fd, "[vdso]", &builder->vdso);
    if (builder->vdso.state == TABLE_PLANNED && build_table(builder, "[vdso]", &builder->vdso))
        os_close(builder->vdso.fd);
}

const struct unwind_table_ref *table_builder_vdso(const struct table_builder *builder)
{
    return &builder->vdso.ref;
}

void table_builder_build_process(struct table_builder *builder, const struct process *process)
{
    for (uint32_t i = 0; builder->planned_count && i < process->mapping_count; i++) {
        const uint32_t number = process->mappings[i].binary;
        if (number != BINARY_NONE && number < builder->table_count &&
            builder->tables[number].state == TABLE_PLANNED && !build_planned(builder, number))
            return;
    }
}

void table_builder_sweep(struct table_builder *builder, int64_t now_ns)
{
    const bool is_short = builder->is_space_short || unwind_maps_is_counted(builder->maps);
    const int64_t kept_ns = is_short ? KEPT_UNUSED_SHORT_NS : KEPT_UNUSED_NS;
    for (uint32_t i = 0; i < builder->table_count; i++) {
        const struct table *table = &builder->tables[i];
        if (!table->serial)
            continue;
        const int64_t unused_ns = binaries_unused_ns(builder->binaries, i);
        if (unused_ns && now_ns - unused_ns > kept_ns)
            drop_table(builder, i);
    }
    builder->is_space_short = false;
}

void table_builder_pause(struct table_builder *builder, bool is_paused)
{
    builder->is_paused = is_paused;
}

void table_builder_count(const struct table_builder *builder,
                         struct table_builder_counts *ret_counts)
{
    *ret_counts =
        (struct table_builder_counts){.failed = builder->failed, .refused = builder->refused};
    for (uint32_t i = 0; i < builder->table_count; i++)
        ret_counts->ready += builder->tables[i].state == TABLE_READY;
}

/* ---- life ---- */

struct table_builder *table_builder_create(struct unwind_maps *maps,
                                           const struct binaries *binaries)
{
    struct table_builder *builder = mem_new(struct table_builder, 1);
    builder->maps = maps;
    builder->binaries = binaries;
    build_vdso(builder);
    return builder;
}

void table_builder_set_host(struct table_builder *builder, const struct table_builder_host *host)
{
    builder->host = *host;
}

void table_builder_destroy(struct table_builder *builder)
{
    for (uint32_t i = 0; i < builder->planned_count; i++)
        os_close(builder->tables[builder->planned[i]].fd);
    mem_free(builder->tables);
    mem_free(builder);
}
