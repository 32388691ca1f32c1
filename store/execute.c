#include "store/execute.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"
#include "store/block_read.h"
#include "store/differences.h"
#include "store/mean.h"
#include "store/stack_union.h"
#include "store/walk.h"

/* ---- the sums ---- */

/* A task's rows are read, one way or another. */
static enum err_code note_read(struct walk *walk, struct walk_task *task, uint64_t bytes,
                               enum err_code code)
{
    return walk_note_read(walk, task, task->granule->row_count, bytes, code);
}

static enum err_code add_granule(struct walk *walk, struct walk_task *task, int64_t *sums)
{
    const struct block_granule *granule = task->granule;
    const bool is_whole = walk_is_whole(task);
    const uint32_t *bytes = granule->extent_bytes;
    if (task->is_broken)
        return ERR_NONE;
    enum err_code code = is_whole
                             ? block_add_totals(task->block, granule, walk->cursor, sums, walk->err)
                             : block_add_range(task->block, granule, walk->cursor, task->first,
                                               task->end, sums, walk->err);
    return note_read(walk, task, bytes[BLOCK_TOTALS] + (is_whole ? 0 : bytes[BLOCK_ROWS]), code);
}

/* Tasks of one block and one column go to one array of sums first: the look-ups by hash are per
 * stack of the block, not per granule. */
static enum err_code add_tasks(struct walk *walk, struct stack_union *stacks,
                               const uint32_t *column_of_series)
{
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < walk->task_count && !code;) {
        const struct block *block = walk->tasks[i].block;
        const uint32_t column = column_of_series ? column_of_series[walk->tasks[i].series] : 0;
        arena_auto scratch = arena_create();
        int64_t *sums = arena_new(scratch, int64_t, block_dictionary(block)->stacks.stack_count);
        for (; i < walk->task_count && !code && walk->tasks[i].block == block &&
               (!column_of_series || column_of_series[walk->tasks[i].series] == column);
             i++)
            code = add_granule(walk, &walk->tasks[i], sums);
        if (!code) {
            stack_union_add(stacks, block, sums, column);
            code = walk_check_limits(walk, stack_union_memory(stacks));
        }
    }
    return code;
}

/* ---- means ---- */

/* Series with equally many snapshots share a column: their sums are divided together. */
static uint32_t find_columns(struct walk *walk, uint32_t *column_of_series,
                             uint64_t *divisor_of_column)
{
    struct map_u64 columns = {0};
    for (uint32_t i = 0; i < walk->series_count; i++) {
        const uint32_t column = map_u64_add(&columns, walk->series[i].profile_count, columns.count);
        column_of_series[i] = column;
        divisor_of_column[column] = walk->series[i].profile_count;
    }
    const uint32_t count = columns.count;
    map_u64_fini(&columns);
    return count;
}

static int64_t round_mean(const int64_t *sums, const uint64_t *divisors, uint32_t count)
{
    struct mean mean = mean_zero();
    for (uint32_t i = 0; i < count; i++) {
        if (sums[i])
            mean_add(&mean, sums[i], divisors[i]);
    }
    return mean_round(&mean);
}

/* Divided by the snapshots that there were, also by those of granules that could not be read. */
static enum err_code add_means_once(struct walk *walk, struct stack_union **ret_stacks)
{
    uint32_t *column_of_series = arena_new(walk->arena, uint32_t, walk->series_count);
    uint64_t *divisors = arena_new(walk->arena, uint64_t, walk->series_count + (size_t)1);
    const uint32_t columns = find_columns(walk, column_of_series, divisors);
    struct stack_union *stacks = stack_union_create(columns ? columns : 1);
    enum err_code code = add_tasks(walk, stacks, column_of_series);
    for (uint32_t i = 0; !code && i < stack_union_count(stacks); i++) {
        int64_t *sums = stack_union_sums(stacks, i);
        sums[0] = round_mean(sums, divisors, columns);
    }
    *ret_stacks = stacks;
    return code;
}

/* Again without what could not be read. */
static enum err_code add_means(struct walk *walk, struct stack_union **ret_stacks)
{
    struct store_statistics *statistics = &walk->statistics;
    enum err_code code;
    uint32_t broken_count;
    *ret_stacks = NULL;
    do {
        stack_union_destroy(*ret_stacks);
        statistics->granule_count = 0;
        statistics->row_count = statistics->bytes_read = 0;
        broken_count = statistics->broken_count;
        code = add_means_once(walk, ret_stacks);
    } while (!code && statistics->broken_count != broken_count);
    return code;
}

/* ---- differences ---- */

static enum err_code add_snapshots(struct walk *walk, struct walk_task *task,
                                   struct stack_union *stacks, struct differences *differences)
{
    const uint32_t count = block_dictionary(task->block)->stacks.stack_count;
    struct block_rows rows;
    enum err_code code =
        block_read_rows(task->block, task->granule, walk->cursor, false, &rows, walk->err);
    const bool is_read = !code;
    code = note_read(walk, task, task->granule->extent_bytes[BLOCK_ROWS], code);
    if (!is_read)
        return code;
    arena_auto scratch = arena_create();
    bool *wanted = arena_new(scratch, bool, count);
    uint32_t *numbers = arena_new(scratch, uint32_t, count);
    for (uint32_t i = 0; i < rows.row_count; i++)
        wanted[rows.stacks[i]] = true;
    stack_union_number(stacks, task->block, wanted, numbers);
    differences_add(differences, &rows, task->first, task->end, numbers);
    return walk_check_limits(walk, stack_union_memory(stacks));
}

/* Series by series. */
static enum err_code add_differences(struct walk *walk, struct stack_union *stacks)
{
    enum err_code code = ERR_NONE;
    walk_sort_by_series(walk);
    for (uint32_t i = 0; i < walk->task_count && !code;) {
        const uint32_t series = walk->tasks[i].series;
        struct differences differences = {0};
        for (; i < walk->task_count && !code && walk->tasks[i].series == series; i++)
            code = add_snapshots(walk, &walk->tasks[i], stacks, &differences);
        if (!code)
            differences_sum(&differences, stack_union_sums(stacks, 0));
        differences_fini(&differences);
    }
    return code;
}

/* ---- the answer ---- */

static const char *text_of(struct walk *walk, struct span text)
{
    return arena_strndup(walk->arena, text.data, text.size);
}

static enum err_code make_profile(struct walk *walk, struct stack_union *stacks,
                                  struct store_answer *answer)
{
    struct stack_union_type type = {
        .sample_type = "samples", .sample_unit = "count", .period_type = "", .period_unit = ""};
    if (walk->type_count) {
        const struct span *parts = walk->types[0].parts;
        type = (struct stack_union_type){
            .sample_type = text_of(walk, parts[STORE_TYPE_SAMPLE_TYPE]),
            .sample_unit = text_of(walk, parts[STORE_TYPE_SAMPLE_UNIT]),
            .period_type = text_of(walk, parts[STORE_TYPE_PERIOD_TYPE]),
            .period_unit = text_of(walk, parts[STORE_TYPE_PERIOD_UNIT]),
            .time_ns = walk->first_ns,
            .duration_ns = walk->last_ns - walk->first_ns,
        };
    }
    answer->type = walk->type_count ? walk->types[0].name : "";
    answer->statistics = walk->statistics;
    return stack_union_profile(stacks, &type, &answer->profile, walk->err);
}

/* A single profile is shown as it is, whatever several would become. */
static enum store_rule rule_of_answer(const struct walk *walk)
{
    return walk->type_count && !walk->query->profile ? walk->types[0].rule : STORE_SUM;
}

static enum err_code answer_question(struct walk *walk, void *context)
{
    struct store_answer *answer = context;
    struct stack_union *stacks = NULL;
    enum err_code code = walk_check_types(walk);
    if (!code)
        code = walk_check_magnitude(walk);
    if (code)
        return code;
    answer->rule = rule_of_answer(walk);
    if (answer->rule == STORE_MEAN) {
        code = add_means(walk, &stacks);
    } else {
        stacks = stack_union_create(1);
        code = answer->rule == STORE_SUM ? add_tasks(walk, stacks, NULL)
                                         : add_differences(walk, stacks);
    }
    if (!code)
        code = make_profile(walk, stacks, answer);
    stack_union_destroy(stacks);
    return code;
}

enum err_code execute_merge(const struct walk_source *source, struct arena *arena,
                            const struct store_query *query, struct store_answer *ret_answer,
                            struct err *err)
{
    struct store_answer answer = {0};
    enum err_code code = walk_run(source, query, WALK_TASKS, arena, answer_question, &answer, err);
    if (!code)
        *ret_answer = answer;
    return code;
}
