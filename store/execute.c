#include "store/execute.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"
#include "store/answers.h"
#include "store/block_read.h"
#include "store/differences.h"
#include "store/frame_names.h"
#include "store/mean.h"
#include "store/moments.h"
#include "store/pile.h"
#include "store/row_labels.h"
#include "store/selector.h"
#include "store/stack_union.h"
#include "store/walk.h"

struct merge {
    struct walk *walk;
    struct row_labels *labels;
    struct stack_union *stacks;
    const uint32_t *column_of_series; /* NULL: all go to column 0 */
    uint32_t *keys;                   /* of rows: room */
    uint32_t key_capacity;
    struct store_answer answer;
};

/* ---- the sums ---- */

static enum err_code add_parts(struct merge *merge, const struct walk_task *task);

/* A task's rows are read, one way or another. */
static enum err_code note_read(struct merge *merge, struct walk_task *task, uint64_t bytes,
                               enum err_code code)
{
    if (code && task->parts) /* what its granules say themselves may be whole */
        return add_parts(merge, task);
    return walk_note_read(merge->walk, task, task->granule->row_count, bytes, code);
}

static uint32_t column_of(const struct merge *merge, const struct walk_task *task)
{
    return merge->column_of_series ? merge->column_of_series[task->series] : 0;
}

static enum err_code check_limits(const struct merge *merge, size_t bytes)
{
    return walk_check_limits(merge->walk, bytes + stack_union_memory(merge->stacks) +
                                              row_labels_memory(merge->labels));
}

/* Rows and their labels; the bytes that were read. */
static enum err_code read_rows(struct merge *merge, const struct walk_task *task, bool wants_labels,
                               struct block_rows *ret_rows, uint64_t *ret_bytes)
{
    const uint32_t *bytes = task->granule->extent_bytes;
    *ret_bytes = bytes[BLOCK_ROWS] + (wants_labels ? bytes[BLOCK_DETAILS] : 0);
    return block_read_rows(task->block, task->granule, merge->walk->cursor, wants_labels, ret_rows,
                           merge->walk->err);
}

/* Rows that are left out count in the whole: they are together in the union. */
static uint32_t number_row(struct merge *merge, const struct walk_task *task, uint32_t stack,
                           uint32_t group)
{
    return stack_union_number(merge->stacks, task->block, group == ROW_LABELS_LEFT_OUT ? 0 : stack,
                              group);
}

/* No row of the task is of the answer: what its profiles add up to is kept with them. */
static enum err_code add_left_out(struct merge *merge, struct walk_task *task)
{
    struct walk *walk = merge->walk;
    const struct block_granule *granule = task->granule;
    const uint32_t number = number_row(merge, task, 0, ROW_LABELS_LEFT_OUT);
    int64_t *sum = &stack_union_sums(merge->stacks, number)[column_of(merge, task)];
    const struct block_profile *profiles;
    if (task->is_broken)
        return ERR_NONE;
    if (walk_is_whole(task)) {
        *sum += granule->total;
        return ERR_NONE;
    }
    enum err_code code =
        block_read_profiles(task->block, granule, walk->cursor, &profiles, walk->err);
    for (uint32_t i = task->first; !code && i < task->end; i++)
        *sum += profiles[i].total;
    return walk_note_read(walk, task, 0, granule->extent_bytes[BLOCK_PROFILES], code);
}

static enum err_code add_rows(struct merge *merge, struct walk_task *task)
{
    enum { CHECK_ROWS = 1 << 16 };
    const uint32_t column = column_of(merge, task);
    struct block_rows rows;
    uint64_t bytes;
    int64_t left_out = 0;
    if (task->is_broken)
        return ERR_NONE;
    enum err_code code = read_rows(merge, task, true, &rows, &bytes);
    const bool is_read = !code;
    code = note_read(merge, task, bytes, code);
    for (uint32_t i = 0; is_read && !code && i < rows.row_count; i++) {
        if (i % CHECK_ROWS == 0)
            code = check_limits(merge, 0);
        if (rows.ordinals[i] < task->first || rows.ordinals[i] >= task->end)
            continue;
        const uint32_t group = row_labels_group(merge->labels, rows.label_sets[i]);
        if (group == ROW_LABELS_LEFT_OUT) {
            left_out += rows.values[i];
            continue;
        }
        const uint32_t number =
            stack_union_number(merge->stacks, task->block, rows.stacks[i], group);
        stack_union_sums(merge->stacks, number)[column] += rows.values[i];
    }
    if (left_out)
        stack_union_sums(merge->stacks, number_row(merge, task, 0, ROW_LABELS_LEFT_OUT))[column] +=
            left_out;
    return code;
}

/* Each of the granule's stacks goes to the union by itself: nothing costs what the block has. */
static enum err_code add_entries(struct merge *merge, struct walk_task *task, uint32_t group)
{
    struct walk *walk = merge->walk;
    const struct block_granule *granule = task->granule;
    const uint32_t column = column_of(merge, task);
    struct block_totals totals;
    if (task->is_broken)
        return ERR_NONE;
    enum err_code code = block_read_totals(task->block, granule, walk->cursor, &totals, walk->err);
    for (uint32_t i = 0; !code && i < totals.count; i++) {
        if (totals.sums[i])
            stack_union_sums(merge->stacks, number_row(merge, task, totals.stacks[i],
                                                       group))[column] += totals.sums[i];
    }
    return note_read(merge, task, granule->extent_bytes[BLOCK_TOTALS], code);
}

/* In place of series totals that cannot be read. */
static enum err_code add_parts(struct merge *merge, const struct walk_task *task)
{
    enum err_code code = ERR_NONE;
    row_labels_begin(merge->labels, task->block, task->granule);
    const uint32_t group = row_labels_group(merge->labels, 0);
    for (uint32_t i = 0; i < task->part_count && !code; i++)
        code = add_entries(merge, &task->parts[i], group);
    return code;
}

/* What is added up before it goes to the union: the look-ups by hash are per stack of the block,
 * not per granule. A pile costs what the block has, so that a granule with a small part of that
 * begins none: the next one may be of another column or group, as series have others. */
struct kind {
    const struct block *block;
    uint32_t column;
    uint32_t group;
};

struct adding {
    struct merge *merge;
    struct kind last;  /* of the granule before */
    struct pile *pile; /* NULL: none is begun */
    struct kind kind;  /* of the pile */
};

static bool is_same(const struct kind *a, const struct kind *b)
{
    return a->block == b->block && a->column == b->column && a->group == b->group;
}

static enum err_code note_added(void *context, struct walk_task *task, enum err_code code)
{
    const uint32_t *bytes = task->granule->extent_bytes;
    return note_read(context, task,
                     bytes[BLOCK_TOTALS] + (walk_is_whole(task) ? 0 : bytes[BLOCK_ROWS]), code);
}

static enum err_code add_pile(struct adding *adding)
{
    struct merge *merge = adding->merge;
    enum err_code code = check_limits(merge, pile_memory(adding->pile));
    return code ? code : pile_add(adding->pile, merge->walk, note_added, merge);
}

static enum err_code end_pile(struct adding *adding)
{
    struct merge *merge = adding->merge;
    if (!adding->pile)
        return ERR_NONE;
    enum err_code code = add_pile(adding);
    if (code)
        return code;
    stack_union_add(merge->stacks, adding->kind.block, pile_sums(adding->pile), adding->kind.column,
                    adding->kind.group);
    pile_destroy(adding->pile);
    adding->pile = NULL;
    return check_limits(merge, 0);
}

/* Is the granule the first of its kind, and little beside its block? */
static bool is_alone(struct adding *adding, const struct walk_task *task, const struct kind *kind)
{
    enum { LITTLE = 16 };
    const bool is_first = !is_same(&adding->last, kind);
    adding->last = *kind;
    return is_first && walk_is_whole(task) &&
           task->granule->entry_count < block_dictionary(task->block)->stacks.stack_count / LITTLE;
}

static enum err_code add_to_pile(struct adding *adding, struct walk_task *task, uint32_t group)
{
    struct merge *merge = adding->merge;
    const struct kind kind = {
        .block = task->block, .column = column_of(merge, task), .group = group};
    enum err_code code = ERR_NONE;
    if (task->is_broken)
        return ERR_NONE;
    if (is_alone(adding, task, &kind)) {
        code = add_entries(merge, task, group);
        return code ? code : check_limits(merge, 0);
    }
    if (!is_same(&adding->kind, &kind))
        code = end_pile(adding);
    if (code)
        return code;
    if (!adding->pile)
        adding->pile = pile_create(task->block);
    adding->kind = kind;
    return pile_put(adding->pile, task) ? add_pile(adding) : ERR_NONE;
}

/* The tasks from `at` on that series totals take the place of: all granules that the series has in
 * its block, whole, none of whose rows is looked at by itself. 0: there is no such thing. */
static uint32_t count_parts(const struct merge *merge, uint32_t at,
                            const struct block_granule **ret_totals)
{
    const struct walk *walk = merge->walk;
    const struct walk_task *first = &walk->tasks[at];
    const struct block_granule *totals = block_series_totals(first->block, first->granule->series);
    uint64_t profile_count = 0;
    uint32_t end = at;
    if (!totals)
        return 0;
    row_labels_begin(merge->labels, first->block, totals);
    if (row_labels_wants_rows(merge->labels, totals))
        return 0;
    for (; end < walk->task_count; end++) {
        const struct walk_task *task = &walk->tasks[end];
        if (task->block != first->block || task->granule->series != totals->series)
            break;
        if (task->is_broken || !walk_is_whole(task))
            return 0;
        profile_count += task->granule->profile_count;
    }
    *ret_totals = totals;
    return profile_count == totals->profile_count ? end - at : 0;
}

static struct walk_task *make_joined(struct walk *walk, uint32_t at, uint32_t count,
                                     const struct block_granule *totals)
{
    struct walk_task *task = arena_new(walk->arena, struct walk_task, 1);
    *task = walk->tasks[at];
    task->granule = totals;
    task->first = 0;
    task->end = totals->profile_count;
    task->parts = &walk->tasks[at];
    task->part_count = count;
    return task;
}

/* The tasks as they are added up; how many. */
static uint32_t join_tasks(const struct merge *merge, struct walk_task **joined)
{
    struct walk *walk = merge->walk;
    uint32_t count = 0;
    for (uint32_t i = 0; i < walk->task_count;) {
        struct walk_task *task = &walk->tasks[i];
        const struct block_granule *totals = NULL;
        const bool is_first = i == 0 || task->block != task[-1].block ||
                              task->granule->series != task[-1].granule->series;
        const uint32_t part_count = is_first ? count_parts(merge, i, &totals) : 0;
        joined[count++] = part_count ? make_joined(walk, i, part_count, totals) : task;
        i += part_count ? part_count : 1;
    }
    return count;
}

static enum err_code add_tasks(struct merge *merge)
{
    struct walk *walk = merge->walk;
    struct adding adding = {.merge = merge};
    struct walk_task **tasks = arena_new_raw(walk->arena, struct walk_task *, walk->task_count);
    const uint32_t count = join_tasks(merge, tasks);
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < count && !code; i++) {
        struct walk_task *task = tasks[i];
        walk_read_ahead_of(walk, tasks, count, i);
        if (!task->granule->row_count) { /* its series was idle */
            code = task->is_broken ? ERR_NONE : note_read(merge, task, 0, ERR_NONE);
            continue;
        }
        row_labels_begin(merge->labels, task->block, task->granule);
        if (!task->are_totals && row_labels_wants_rows(merge->labels, task->granule)) {
            code = add_rows(merge, task);
            continue;
        }
        const uint32_t group = row_labels_group(merge->labels, 0);
        code = group == ROW_LABELS_LEFT_OUT ? add_left_out(merge, task)
                                            : add_to_pile(&adding, task, group);
    }
    if (!code)
        code = end_pile(&adding);
    pile_destroy(adding.pile);
    return code;
}

/* ---- means ---- */

static void count_moment(void *context, int64_t time_ns)
{
    uint64_t *count = context;
    (void)time_ns;
    ++*count;
}

/* The task's rows are read, and noted, after this. */
static enum err_code read_moments(struct merge *merge, struct walk_task *task,
                                  struct moments *moments)
{
    struct walk *walk = merge->walk;
    const struct block_profile *profiles;
    enum err_code code =
        block_read_profiles(task->block, task->granule, walk->cursor, &profiles, walk->err);
    if (code)
        return walk_note_read(walk, task, 0, 0, code);
    walk->statistics.bytes_read += task->granule->extent_bytes[BLOCK_PROFILES];
    moments_add(moments, profiles, task->first, task->end);
    return check_limits(merge, moments_memory(moments));
}

/* How many snapshots each series has in what can be read. */
static enum err_code count_snapshots(struct merge *merge, uint64_t *counts)
{
    struct walk *walk = merge->walk;
    const uint32_t *order = moments_find_shared(walk);
    struct moments moments = {0};
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < walk->task_count && !code;) {
        const uint32_t series = walk->tasks[order[i]].series;
        for (; i < walk->task_count && !code && walk->tasks[order[i]].series == series; i++) {
            struct walk_task *task = &walk->tasks[order[i]];
            if (task->has_shared_moments && !task->is_broken)
                code = read_moments(merge, task, &moments);
            else if (!task->is_broken)
                counts[series] += task->end - task->first;
        }
        moments_tell(&moments, count_moment, &counts[series]);
    }
    moments_fini(&moments);
    return code;
}

/* Series with equally many snapshots share a column: their sums are divided together. */
static uint32_t find_columns(const struct walk *walk, const uint64_t *counts,
                             uint32_t *column_of_series, uint64_t *divisor_of_column)
{
    struct map_u64 columns = {0};
    for (uint32_t i = 0; i < walk->series_count; i++) {
        const uint32_t column = map_u64_add(&columns, counts[i], columns.count);
        column_of_series[i] = column;
        divisor_of_column[column] = counts[i];
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
static enum err_code add_means_once(struct merge *merge)
{
    struct walk *walk = merge->walk;
    uint32_t *column_of_series = arena_new(walk->arena, uint32_t, walk->series_count);
    uint64_t *divisors = arena_new(walk->arena, uint64_t, walk->series_count + (size_t)1);
    uint64_t *counts = arena_new(walk->arena, uint64_t, walk->series_count);
    enum err_code code = count_snapshots(merge, counts);
    if (code)
        return code;
    const uint32_t columns = find_columns(walk, counts, column_of_series, divisors);
    stack_union_destroy(merge->stacks);
    merge->stacks = stack_union_create(columns ? columns : 1);
    merge->column_of_series = column_of_series;
    code = add_tasks(merge);
    for (uint32_t i = 0; !code && i < stack_union_count(merge->stacks); i++) {
        int64_t *sums = stack_union_sums(merge->stacks, i);
        sums[0] = round_mean(sums, divisors, columns);
    }
    return code;
}

/* Again without what could not be read. */
static enum err_code add_means(struct merge *merge)
{
    struct store_statistics *statistics = &merge->walk->statistics;
    const uint64_t opening_bytes = statistics->bytes_read;
    enum err_code code;
    uint32_t broken_count;
    do {
        statistics->granule_count = 0;
        statistics->row_count = 0;
        statistics->bytes_read = opening_bytes;
        broken_count = statistics->broken_count;
        code = add_means_once(merge);
    } while (!code && statistics->broken_count != broken_count);
    return code;
}

/* ---- differences ---- */

/* keys[i]: what row i is in the union. Of rows without labels each stack is looked up once. */
static void find_keys(struct merge *merge, const struct walk_task *task,
                      const struct block_rows *rows)
{
    if (rows->row_count > merge->key_capacity) {
        merge->key_capacity = rows->row_count;
        merge->keys = mem_resize(merge->keys, merge->key_capacity, sizeof(*merge->keys));
    }
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t set = rows->label_sets ? rows->label_sets[i] : 0;
        const uint32_t group = row_labels_group(merge->labels, set);
        const bool is_same = i && !rows->label_sets && rows->stacks[i] == rows->stacks[i - 1];
        merge->keys[i] =
            is_same ? merge->keys[i - 1] : number_row(merge, task, rows->stacks[i], group);
    }
}

static enum err_code add_snapshots(struct merge *merge, struct walk_task *task,
                                   struct differences *differences)
{
    struct block_rows rows;
    uint64_t bytes;
    row_labels_begin(merge->labels, task->block, task->granule);
    const bool wants_labels =
        !task->are_totals && row_labels_wants_rows(merge->labels, task->granule);
    enum err_code code = read_rows(merge, task, wants_labels, &rows, &bytes);
    const bool is_read = !code;
    code = note_read(merge, task, bytes, code);
    if (!is_read)
        return code;
    if (!wants_labels)
        rows.label_sets = NULL;
    find_keys(merge, task, &rows);
    differences_add(differences, task->block, &rows, task->first, task->end, merge->keys);
    return check_limits(merge, differences_memory(differences));
}

static void add_gain(void *context, const struct difference_gain *gained)
{
    struct merge *merge = context;
    stack_union_sums(merge->stacks, gained->key)[0] += gained->value;
}

/* Series by series. */
static enum err_code add_differences(struct merge *merge)
{
    struct walk *walk = merge->walk;
    enum err_code code = ERR_NONE;
    walk_sort_by_series(walk);
    for (uint32_t i = 0; i < walk->task_count && !code;) {
        const uint32_t series = walk->tasks[i].series;
        struct differences differences = {0};
        for (; i < walk->task_count && !code && walk->tasks[i].series == series; i++) {
            walk_read_ahead(walk, i);
            code = add_snapshots(merge, &walk->tasks[i], &differences);
        }
        if (!code)
            differences_tell(&differences, NULL, add_gain, merge);
        differences_fini(&differences);
    }
    return code;
}

/* ---- the answer ---- */

static const char *text_of(struct walk *walk, struct span text)
{
    return arena_strndup(walk->arena, text.data, text.size);
}

/* Of what was found, else as the question names it: into named. */
static const struct span *find_type(struct walk *walk, struct span *named)
{
    const struct store_query *query = walk->query;
    struct selector *selector;
    struct err err;
    if (walk->type_count)
        return walk->types[0].parts;
    const bool is_one = query->selector_count == 1 &&
                        !selector_parse(walk->arena, query->selectors[0], &selector, &err);
    return is_one && selector_find_type(selector, named) ? named : NULL;
}

static enum err_code make_profile(struct merge *merge)
{
    struct walk *walk = merge->walk;
    struct store_answer *answer = &merge->answer;
    struct stack_union_type type = {
        .sample_type = "samples", .sample_unit = "count", .period_type = "", .period_unit = ""};
    struct span named[SELECTOR_TYPE_PARTS];
    const struct span *parts = find_type(walk, named);
    if (parts) {
        type = (struct stack_union_type){
            .sample_type = text_of(walk, parts[STORE_TYPE_SAMPLE_TYPE]),
            .sample_unit = text_of(walk, parts[STORE_TYPE_SAMPLE_UNIT]),
            .period_type = text_of(walk, parts[STORE_TYPE_PERIOD_TYPE]),
            .period_unit = text_of(walk, parts[STORE_TYPE_PERIOD_UNIT]),
        };
    }
    if (walk->type_count) {
        type.time_ns = walk->first_ns;
        type.duration_ns = walk->last_ns - walk->first_ns;
    }
    type.labels = merge->labels;
    answer->type = walk->type_count ? walk->types[0].name : "";
    struct profile *profile;
    enum err_code code = stack_union_profile(merge->stacks, &type, &profile, walk->err);
    if (code)
        return code;
    code = frame_names_resolve(walk->resolver, walk->query->tenant_id, profile, profile->arena,
                               profile, &walk->statistics.names, walk->err);
    answer->statistics = walk->statistics;
    if (code)
        profile_destroy(profile);
    else
        answer->profile = answer->own_profile = profile;
    return code;
}

/* A single profile is shown as it is, whatever several would become. */
static enum store_rule rule_of_answer(const struct walk *walk)
{
    return walk->type_count && !walk->query->profile ? walk->types[0].rule : STORE_SUM;
}

static enum err_code add_all(struct merge *merge)
{
    enum err_code code = ERR_NONE;
    merge->answer.rule = rule_of_answer(merge->walk);
    merge->stacks = stack_union_create(1);
    if (merge->answer.rule == STORE_MEAN)
        code = add_means(merge);
    else
        code = merge->answer.rule == STORE_SUM ? add_tasks(merge) : add_differences(merge);
    if (!code)
        code = row_labels_check(merge->labels, merge->walk->err);
    uint32_t count;
    merge->answer.left_out = stack_union_left_out(merge->stacks, &count);
    if (!code && count)
        merge->answer.absent_label = row_labels_describe_absent(merge->labels);
    return code ? code : make_profile(merge);
}

static enum err_code make_answer(struct walk *walk, struct store_answer *ret_answer)
{
    const struct store_query *query = walk->query;
    struct merge merge = {.walk = walk};
    merge.labels = row_labels_create(walk->arena, query->label_filter, walk->row_selectors,
                                     query->label_names, query->label_name_count,
                                     query->wants_all_labels ? ROW_LABELS_ALL : ROW_LABELS_EXACT);
    enum err_code code = walk_open_all_stacks(walk, true);
    if (!code)
        code = add_all(&merge);
    *ret_answer = merge.answer;
    stack_union_destroy(merge.stacks);
    row_labels_destroy(merge.labels);
    mem_free(merge.keys);
    return code;
}

struct asking {
    struct answers *answers;
    struct store_answer answer;
};

static enum err_code answer_question(struct walk *walk, void *context)
{
    struct asking *asking = context;
    struct store_answer *answer = &asking->answer;
    const struct store_query *query = walk->query;
    char identity[STORE_IDENTITY_BYTES];
    *answer = (struct store_answer){0};
    enum err_code code = walk_check_types(walk);
    if (!code)
        code = walk_check_magnitude(walk);
    if (code)
        return code;
    walk_count_unlabelled(walk, query->label_names, query->label_name_count);
    answers_identify(walk, identity);
    if (*identity && query->has_answer && query->has_answer(query->has_answer_context, identity)) {
        answer->is_known = true;
        answer->type = walk->types[0].name;
        return ERR_NONE;
    }
    code = *identity && !query->wants_own_profile
               ? walk_explain_wait(
                     walk, answers_ref(asking->answers, walk, identity, make_answer, answer))
               : make_answer(walk, answer);
    if (!code && !answer->statistics.broken_count && !answer->statistics.oversized_count)
        memcpy(answer->identity, identity, sizeof(identity));
    return code;
}

enum err_code execute_merge(const struct walk_source *source, struct arena *arena,
                            const struct store_query *query, struct store_answer *ret_answer,
                            struct err *err)
{
    struct asking asking = {.answers = source->answers};
    enum err_code code = walk_run(source, query, WALK_TASKS, arena, answer_question, &asking, err);
    if (code)
        return code;
    if (!*asking.answer.type && !asking.answer.statistics.broken_count)
        code = walk_explain_nothing(source, query, arena, err);
    if (code)
        store_answer_fini(&asking.answer);
    else
        *ret_answer = asking.answer;
    return code;
}
