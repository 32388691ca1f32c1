#include "agent/unwind/unwind_publisher.h"

#include "agent/interpreter/interpreter.h"
#include "agent/kernel/kernel_program.h"
#include "agent/process/binaries.h"
#include "agent/process/process.h"
#include "agent/unwind/unwind_maps.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/*
 * The state of a process: idle, queued, or retry queued.
 *
 *   state         event                                             next state
 *   ------------  ------------------------------------------------  ----------------------------
 *   idle          unwind_publisher_enqueue: mappings have changed   queued
 *   queued        must_pause: many mappings, and published just     retry queued
 *                   before or too many removed bytes wait
 *                 publish: no space for the mapping list, or a      retry queued
 *                   table of a process that still runs may improve
 *                 publish: otherwise                                idle
 *   retry queued  unwind_publisher_enqueue                          queued
 *                 sweep, once a second                              queued
 */

/* The list of a process with many mappings is large, and its previous list stays allocated for a
 * while. A pause in proportion to the number of mappings limits the memory of all its lists,
 * however often the process maps something. Without the pause, a program that mapped 50,000 pieces
 * one by one took 427 MB. */
enum { LARGE_LIST = 1024, LARGE_PAUSE_NS = 20000 /* per mapping */ };
#define LARGE_WAITING_MAX_BYTES (UINT64_C(16) << 20)

struct unwind_publisher {
    struct kernel_program *program;
    const struct binaries *binaries;
    struct interpreters *interpreters;
    struct unwind_maps *maps;
    struct table_builder *tables;
    struct process *queue;       /* to be published */
    struct process *retry_queue; /* to be queued again by the next sweep */
    uint64_t refused_processes;
};

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
    publisher->tables = table_builder_create(publisher->maps, binaries);
    return publisher;
}

void unwind_publisher_set_host(struct unwind_publisher *publisher,
                               const struct table_builder_host *host)
{
    table_builder_set_host(publisher->tables, host);
}

void unwind_publisher_destroy(struct unwind_publisher *publisher)
{
    if (!publisher)
        return;
    table_builder_destroy(publisher->tables);
    unwind_maps_destroy(publisher->maps);
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

static void remove_from_queue(struct process **link, const struct process *process)
{
    while (*link && *link != process)
        link = &(*link)->next_queued;
    if (*link)
        *link = process->next_queued;
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

static void drop_list(struct unwind_publisher *publisher, struct process *process)
{
    if (process->has_list)
        unwind_maps_drop_mappings(publisher->maps, process->list_owner, &process->list,
                                  clock_monotonic_ns());
    process->has_list = false;
    process->list = (struct unwind_mapping_list){0};
}

void unwind_publisher_forget(struct unwind_publisher *publisher, struct process *process)
{
    if (process->is_queued)
        remove_from_queue(&publisher->queue, process);
    if (process->is_retry_queued)
        remove_from_queue(&publisher->retry_queue, process);
    if (publisher->program)
        kernel_program_remove_process(publisher->program, process->process_id, &process->list);
    drop_list(publisher, process);
}

/* How the unwinder treats one mapping: by which table, or by frame pointers. */
static struct unwind_mapping describe_mapping(struct unwind_publisher *publisher,
                                              struct process *process,
                                              const struct process_mapping *mapping,
                                              bool *needs_retry)
{
    struct unwind_mapping described = {.end = mapping->limit};
    const struct unwind_table_ref *table =
        mapping->is_vdso ? table_builder_vdso(publisher->tables) : NULL;
    uint64_t address = mapping->file_offset;
    if (mapping->binary != BINARY_NONE) {
        table = table_builder_request(publisher->tables, process, mapping, needs_retry);
        address = binary_address(binaries_get(publisher->binaries, mapping->binary),
                                 mapping->file_offset);
    }
    if (!table || table->chunk_count == 0) {
        described.flags = UNWIND_MAPPING_FP;
        return described;
    }
    described.bias = mapping->start - address + table->start;
    described.first_chunk = table->first_chunk;
    described.chunk_count = table->chunk_count;
    return described;
}

static void publish_process(struct unwind_publisher *publisher, struct process *process)
{
    arena_auto arena = arena_create();
    const uint32_t count = process->mapping_count;
    uint64_t *starts = arena_new(arena, uint64_t, count);
    struct unwind_mapping *mappings = arena_new(arena, struct unwind_mapping, count);
    struct unwind_mapping_list list = {0};
    struct err ignored;
    bool needs_retry = false;
    interpreters_note(publisher->interpreters, process);
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = process->mappings[i].start;
        mappings[i] = describe_mapping(publisher, process, &process->mappings[i], &needs_retry);
    }
    const struct interpreter_process interpreter = interpreter_get(process->interpreter);
    const uint64_t owner =
        count && unwind_maps_is_counted(publisher->maps) ? process_owner(process) : 0;
    const uint32_t dropped =
        process->has_list && process->list_owner == owner ? process->list.count : 0;
    /* Without a mapping list the unwinder follows frame pointers without checking them. */
    const enum err_code code =
        count ? unwind_maps_put_mappings(publisher->maps, owner, dropped, starts, mappings, count,
                                         &list, &ignored)
              : ERR_NONE;
    const bool has_list = count && !code;
    if (!has_list)
        list = (struct unwind_mapping_list){0};
    const bool is_published =
        !publisher->program ||
        kernel_program_put_process(publisher->program, process->process_id,
                                   process->is_start_exact ? process->started_ns : 0, &list,
                                   &interpreter);
    const bool is_refused = code == ERR_LIMIT || !is_published;
    publisher->refused_processes += is_refused && !process->is_list_refused;
    process->is_list_refused = is_refused;
    drop_list(publisher, process);
    process->list = list;
    process->list_owner = owner;
    process->has_list = has_list;
    process->published_ns = clock_monotonic_ns();
    if (is_refused || (needs_retry && !process_has_ended(process)))
        queue_retry(publisher, process);
}

static bool must_pause(const struct unwind_publisher *publisher, const struct process *process)
{
    struct unwind_maps_stats stats;
    const int64_t pause_ns = (int64_t)process->mapping_count * LARGE_PAUSE_NS;
    if (process->mapping_count < LARGE_LIST)
        return false;
    unwind_maps_stats_get(publisher->maps, &stats);
    return stats.waiting_bytes > LARGE_WAITING_MAX_BYTES ||
           clock_monotonic_ns() - process->published_ns < pause_ns;
}

static void publish_unless_paused(struct unwind_publisher *publisher, struct process *process)
{
    process->is_queued = false;
    /* A kernel thread has no mappings and needs no list. */
    if (must_pause(publisher, process))
        queue_retry(publisher, process);
    else if (process->mapping_count || process->has_list)
        publish_process(publisher, process);
}

bool unwind_publisher_publish(struct unwind_publisher *publisher)
{
    if (!publisher->queue)
        return table_builder_build_next(publisher->tables);
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
    table_builder_build_process(publisher->tables, process);
}

void unwind_publisher_sweep(struct unwind_publisher *publisher, int64_t now_ns)
{
    table_builder_sweep(publisher->tables, now_ns);
    unwind_maps_reclaim(publisher->maps, now_ns);
    while (publisher->retry_queue) {
        struct process *process = pop_process(&publisher->retry_queue);
        process->is_retry_queued = false;
        unwind_publisher_enqueue(publisher, process);
    }
}

void unwind_publisher_pause(struct unwind_publisher *publisher, bool is_paused)
{
    table_builder_pause(publisher->tables, is_paused);
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
    struct table_builder_counts tables;
    unwind_maps_stats_get(publisher->maps, &stats);
    table_builder_count(publisher->tables, &tables);
    *ret_counts = (struct unwind_publisher_counts){.tables = tables.ready,
                                                   .failed_tables = tables.failed,
                                                   .table_bytes = stats.used_bytes,
                                                   .shard_bytes = stats.shard_bytes,
                                                   .refused = publisher->refused_processes,
                                                   .refused_tables = tables.refused};
}
