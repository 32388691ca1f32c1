#include "store/query/partial_sums.h"

#include "lib/base/mem.h"
#include "lib/base/parallel.h"
#include "store/block/block_read.h"
#include "store/query/scan.h"

#include <assert.h>

/* Of entries and rows, which take some ns each: a crew costs a tenth of a millisecond. */
enum { TASKS_MOST = 1024, ENOUGH = 1 << 20, WORTH_A_CREW = 1 << 17 };

struct failure {
    uint32_t task; /* of those put */
    struct err err;
};

/* What one of the crew does. */
struct part {
    struct block_cursor *cursor;
    int64_t *sums; /* NULL: it has had nothing to do yet */
    uint32_t first;
    uint32_t end; /* of the tasks put */
    struct failure *failures;
    uint32_t failure_count;
    uint32_t failure_capacity;
};

struct partial_sums {
    const struct block *block;
    struct arena *arena;
    uint32_t stack_count;
    struct scan_task *tasks[TASKS_MOST];
    uint32_t task_count;
    uint64_t weight;
    struct part parts[PARALLEL_MOST];
    uint32_t part_count; /* that were used */
};

struct partial_sums *partial_sums_create(const struct block *block)
{
    struct partial_sums *pile = mem_new(struct partial_sums, 1);
    pile->block = block;
    pile->arena = arena_create();
    pile->stack_count = block_dictionary(block)->stacks.stack_count;
    return pile;
}

void partial_sums_destroy(struct partial_sums *pile)
{
    if (!pile)
        return;
    for (uint32_t i = 0; i < pile->part_count; i++) {
        block_cursor_destroy(pile->parts[i].cursor);
        mem_free(pile->parts[i].failures);
    }
    arena_destroy(pile->arena);
    mem_free(pile);
}

static uint64_t weight_of(const struct scan_task *task)
{
    return scan_is_whole(task) ? task->granule->entry_count : task->granule->row_count;
}

bool partial_sums_put(struct partial_sums *pile, struct scan_task *task)
{
    assert(task->block == pile->block && !task->is_broken && pile->task_count < TASKS_MOST);
    pile->tasks[pile->task_count++] = task;
    pile->weight += weight_of(task);
    return pile->weight >= ENOUGH || pile->task_count == TASKS_MOST;
}

static void note_failure(struct part *part, uint32_t task, const struct err *err)
{
    if (part->failure_count == part->failure_capacity) {
        part->failure_capacity = part->failure_capacity ? part->failure_capacity * 2 : 4;
        part->failures =
            mem_resize(part->failures, part->failure_capacity, sizeof(*part->failures));
    }
    part->failures[part->failure_count++] = (struct failure){.task = task, .err = *err};
}

static void add_part(void *context, size_t i)
{
    struct partial_sums *pile = context;
    struct part *part = &pile->parts[i];
    struct err err;
    for (uint32_t at = part->first; at < part->end; at++) {
        const struct scan_task *task = pile->tasks[at];
        const enum err_code code =
            scan_is_whole(task)
                ? block_add_totals(pile->block, task->granule, part->cursor, part->sums, &err)
                : block_add_range(pile->block, task->granule, part->cursor, task->first, task->end,
                                  part->sums, &err);
        if (code)
            note_failure(part, at, &err);
    }
}

/* A part costs a look at each stack of the block, so that there are no more than are worth it. */
static uint32_t count_parts(const struct partial_sums *pile)
{
    const uint64_t worth = 1 + pile->weight / pile->stack_count;
    const uint64_t most = worth > pile->part_count ? worth : pile->part_count;
    if (pile->weight < WORTH_A_CREW)
        return 1;
    return most < parallel_size() ? (uint32_t)most : (uint32_t)parallel_size();
}

/* Tasks one behind the other, so that each part weighs about the same. */
static void divide(struct partial_sums *pile, uint32_t part_count)
{
    uint64_t weight = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        struct part *part = &pile->parts[i];
        if (i == pile->part_count) {
            part->cursor = block_cursor_create();
            part->sums = arena_new(pile->arena, int64_t, pile->stack_count);
            pile->part_count++;
        }
        part->failure_count = 0;
        part->first = at;
        while (at < pile->task_count && weight * part_count < pile->weight * (i + 1))
            weight += weight_of(pile->tasks[at++]);
        part->end = i + 1 == part_count ? pile->task_count : at;
    }
}

enum err_code partial_sums_add(struct partial_sums *pile, struct scan *walk,
                               partial_sums_note *note, void *context)
{
    const uint32_t part_count = count_parts(pile);
    divide(pile, part_count);
    parallel_work(part_count, add_part, pile);
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < part_count && !code; i++) {
        const struct part *part = &pile->parts[i];
        uint32_t failure = 0; /* failures may be NULL: there are none */
        for (uint32_t at = part->first; at < part->end && !code; at++) {
            enum err_code read = ERR_NONE;
            if (failure < part->failure_count && part->failures[failure].task == at) {
                *walk->err = part->failures[failure].err;
                read = part->failures[failure++].err.code;
            }
            code = note(context, pile->tasks[at], read);
        }
    }
    pile->task_count = 0;
    pile->weight = 0;
    return code;
}

const int64_t *partial_sums_sums(struct partial_sums *pile)
{
    assert(pile->task_count == 0);
    if (!pile->part_count)
        divide(pile, 1);
    int64_t *sums = pile->parts[0].sums;
    for (uint32_t i = 1; i < pile->part_count; i++) {
        for (uint32_t stack = 0; stack < pile->stack_count; stack++)
            sums[stack] = (int64_t)((uint64_t)sums[stack] + (uint64_t)pile->parts[i].sums[stack]);
        memset(pile->parts[i].sums, 0, pile->stack_count * sizeof(*sums));
    }
    return sums;
}

size_t partial_sums_memory(const struct partial_sums *pile)
{
    const uint32_t more = pile->task_count ? count_parts(pile) : 0;
    return sizeof(*pile) + arena_bytes(pile->arena) +
           (more > pile->part_count ? more - pile->part_count : 0) * (size_t)pile->stack_count *
               sizeof(int64_t);
}
