#include "store/query/partial_sums.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/parallel.h"
#include "lib/base/vec.h"
#include "store/block/block_read.h"
#include "store/query/scan.h"

#include <assert.h>

/* Weights are counts of entries and rows, which take some ns each; using helper threads costs a
 * tenth of a millisecond. */
enum { TASKS_MAX = 1024, FULL_WEIGHT = 1 << 20, PARALLEL_MIN_WEIGHT = 1 << 17 };

struct failure {
    uint32_t task; /* index of the task */
    struct err err;
};

/* The share of one thread. */
struct part {
    struct block_cursor *cursor;
    int64_t *sums; /* NULL: not used yet */
    uint32_t first;
    uint32_t end; /* of the tasks */
    struct failure *failures;
    uint32_t failure_count;
    uint32_t failure_capacity;
};

struct partial_sums {
    const struct block *block;
    struct arena *arena;
    uint32_t stack_count;
    struct scan_task *tasks[TASKS_MAX];
    uint32_t task_count;
    uint64_t weight;
    struct part parts[PARALLEL_MAX_THREADS];
    uint32_t part_count; /* used so far */
};

struct partial_sums *partial_sums_create(const struct block *block)
{
    struct partial_sums *partials = mem_new(struct partial_sums, 1);
    partials->block = block;
    partials->arena = arena_create();
    partials->stack_count = block_dictionary(block)->stacks.stack_count;
    return partials;
}

void partial_sums_destroy(struct partial_sums *partials)
{
    if (!partials)
        return;
    for (uint32_t i = 0; i < partials->part_count; i++) {
        block_cursor_destroy(partials->parts[i].cursor);
        mem_free(partials->parts[i].failures);
    }
    arena_destroy(partials->arena);
    mem_free(partials);
}

static uint64_t weight_of(const struct scan_task *task)
{
    return scan_is_whole(task) ? task->granule->entry_count : task->granule->row_count;
}

bool partial_sums_add_task(struct partial_sums *partials, struct scan_task *task)
{
    assert(task->block == partials->block && !task->is_broken && partials->task_count < TASKS_MAX);
    partials->tasks[partials->task_count++] = task;
    partials->weight += weight_of(task);
    return partials->weight >= FULL_WEIGHT || partials->task_count == TASKS_MAX;
}

static void record_failure(struct part *part, uint32_t task, const struct err *err)
{
    vec_reserve(part->failures, part->failure_capacity, part->failure_count + 1);
    part->failures[part->failure_count++] = (struct failure){.task = task, .err = *err};
}

static void add_part(void *context, size_t i)
{
    struct partial_sums *partials = context;
    struct part *part = &partials->parts[i];
    struct err err;
    for (uint32_t at = part->first; at < part->end; at++) {
        const struct scan_task *task = partials->tasks[at];
        const enum err_code code =
            scan_is_whole(task)
                ? block_add_totals(partials->block, task->granule, part->cursor, part->sums, &err)
                : block_add_range(partials->block, task->granule, part->cursor, task->first,
                                  task->end, part->sums, &err);
        if (code)
            record_failure(part, at, &err);
    }
}

/* Each part costs a pass over all stacks of the block when the parts are added, so there are no
 * more parts than are worth it. Example: 2^20 entries in a block of 300,000 stacks are worth 1 + 3
 * = 4 parts. */
static uint32_t count_parts(const struct partial_sums *partials)
{
    const uint64_t worth = 1 + partials->weight / partials->stack_count;
    const uint64_t most = worth > partials->part_count ? worth : partials->part_count;
    if (partials->weight < PARALLEL_MIN_WEIGHT)
        return 1;
    return most < parallel_size() ? (uint32_t)most : (uint32_t)parallel_size();
}

/* Gives each part a run of consecutive tasks of about the same weight. */
static void assign_tasks(struct partial_sums *partials, uint32_t part_count)
{
    uint64_t weight = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        struct part *part = &partials->parts[i];
        if (i == partials->part_count) {
            part->cursor = block_cursor_create();
            part->sums = arena_new(partials->arena, int64_t, partials->stack_count);
            partials->part_count++;
        }
        part->failure_count = 0;
        part->first = at;
        while (at < partials->task_count && weight * part_count < partials->weight * (i + 1))
            weight += weight_of(partials->tasks[at++]);
        part->end = i + 1 == part_count ? partials->task_count : at;
    }
}

enum err_code partial_sums_compute(struct partial_sums *partials, struct scan *scan,
                                   partial_sums_note *note, void *context)
{
    const uint32_t part_count = count_parts(partials);
    assign_tasks(partials, part_count);
    parallel_for(part_count, add_part, partials);
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < part_count && !code; i++) {
        const struct part *part = &partials->parts[i];
        uint32_t failure = 0; /* failures may be NULL: there are none */
        for (uint32_t at = part->first; at < part->end && !code; at++) {
            enum err_code read = ERR_NONE;
            if (failure < part->failure_count && part->failures[failure].task == at) {
                *scan_err(scan) = part->failures[failure].err;
                read = part->failures[failure++].err.code;
            }
            code = note(context, partials->tasks[at], read);
        }
    }
    partials->task_count = 0;
    partials->weight = 0;
    return code;
}

const int64_t *partial_sums_sums(struct partial_sums *partials)
{
    assert(partials->task_count == 0);
    if (!partials->part_count)
        assign_tasks(partials, 1);
    int64_t *sums = partials->parts[0].sums;
    for (uint32_t i = 1; i < partials->part_count; i++) {
        for (uint32_t stack = 0; stack < partials->stack_count; stack++)
            sums[stack] =
                (int64_t)((uint64_t)sums[stack] + (uint64_t)partials->parts[i].sums[stack]);
        memset(partials->parts[i].sums, 0, partials->stack_count * sizeof(*sums));
    }
    return sums;
}

size_t partial_sums_memory(const struct partial_sums *partials)
{
    const uint32_t more = partials->task_count ? count_parts(partials) : 0;
    return sizeof(*partials) + arena_bytes(partials->arena) +
           (more > partials->part_count ? more - partials->part_count : 0) *
               (size_t)partials->stack_count * sizeof(int64_t);
}
