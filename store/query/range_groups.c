#include "store/query/range_groups.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdlib.h>
#include <string.h>

#define NO_SERIES UINT32_MAX

/*
 * Groups that consist of the same series share one coverage: a query may have a group per request
 * of a service whose profiles leave many gaps. When a series is added to the first of these groups,
 * the united coverage is kept in `united`; the other groups take it from there, so it is computed
 * once.
 */
struct shared_coverage {
    struct coverage covered;
    uint32_t user_count;    /* groups, plus 1 while another coverage has this one as its `united` */
    uint32_t united_series; /* NO_SERIES: united is NULL */
    struct shared_coverage *united; /* `covered` united with the time of united_series */
};

struct cell {
    __int128 sum;
    bool is_there;
};

struct group {
    __int128 total;     /* of all steps: groups are ranked by it */
    struct cell *cells; /* per step; NULL: only the total is kept */
    bool is_there;
    bool is_wanted;                  /* its cells have to be filled in a second pass */
    uint32_t last_series;            /* the last one added to covered */
    struct shared_coverage *covered; /* NULL: none yet, or it has no cells */
};

struct range_groups {
    uint32_t step_count;
    uint32_t max_chosen;
    uint32_t max_with_cells; /* in the first pass */
    uint32_t with_cells;
    bool is_second_pass;
    struct cell *all;             /* per step: the sum of all groups */
    struct coverage rest_covered; /* by the series of groups without cells, which are not chosen */
    uint32_t last_series;         /* the last one added to rest_covered */
    size_t covered_bytes;         /* of all shared coverages */
    struct shared_coverage uncovered; /* empty; its `united` is that of groups without coverage */
    struct group *groups;
    uint32_t capacity;
    uint32_t count; /* existing groups */
    uint32_t *chosen;
    uint32_t chosen_count;
};

struct range_groups *range_groups_create(uint32_t step_count, uint32_t max_chosen,
                                         size_t cell_budget_bytes)
{
    struct range_groups *groups = mem_new(struct range_groups, 1);
    const size_t bytes = step_count * sizeof(struct cell);
    const size_t fitting = bytes ? cell_budget_bytes / bytes : max_chosen;
    *groups = (struct range_groups){
        .step_count = step_count,
        .max_chosen = max_chosen,
        .max_with_cells = fitting < max_chosen   ? max_chosen
                          : fitting > UINT32_MAX ? UINT32_MAX
                                                 : (uint32_t)fitting,
        .all = mem_new(struct cell, step_count),
        .last_series = NO_SERIES,
        .uncovered = {.united_series = NO_SERIES},
    };
    return groups;
}

static void unref_coverage(struct range_groups *groups, struct shared_coverage *shared)
{
    while (shared && --shared->user_count == 0) {
        struct shared_coverage *united = shared->united;
        groups->covered_bytes -= sizeof(*shared) + coverage_memory(&shared->covered);
        coverage_fini(&shared->covered);
        mem_free(shared);
        shared = united;
    }
}

void range_groups_destroy(struct range_groups *groups)
{
    if (!groups)
        return;
    for (uint32_t i = 0; i < groups->capacity; i++) {
        mem_free(groups->groups[i].cells);
        unref_coverage(groups, groups->groups[i].covered);
    }
    unref_coverage(groups, groups->uncovered.united);
    coverage_fini(&groups->rest_covered);
    mem_free(groups->groups);
    mem_free(groups->all);
    mem_free(groups->chosen);
    mem_free(groups);
}

static void reserve_groups(struct range_groups *groups, uint32_t group)
{
    vec_reserve_zeroed(groups->groups, groups->capacity, (size_t)group + 1);
}

static void begin_group(struct range_groups *groups, struct group *group)
{
    *group = (struct group){.is_there = true, .last_series = NO_SERIES};
    if (groups->with_cells < groups->max_with_cells) {
        group->cells = mem_new(struct cell, groups->step_count);
        groups->with_cells++;
    }
    groups->count++;
}

static void add_to_cell(struct cell *cell, __int128 sum)
{
    cell->sum += sum;
    cell->is_there = true;
}

void range_groups_add(struct range_groups *groups, uint32_t number, uint32_t step, __int128 sum)
{
    if (groups->is_second_pass) {
        if (range_groups_wants(groups, number))
            add_to_cell(&groups->groups[number].cells[step], sum);
        return;
    }
    reserve_groups(groups, number);
    struct group *group = &groups->groups[number];
    if (!group->is_there)
        begin_group(groups, group);
    if (group->cells)
        add_to_cell(&group->cells[step], sum);
    add_to_cell(&groups->all[step], sum);
    group->total += sum;
}

static struct shared_coverage *unite(struct range_groups *groups,
                                     const struct shared_coverage *shared,
                                     const struct coverage *covered)
{
    struct shared_coverage *united = mem_new(struct shared_coverage, 1);
    united->united_series = NO_SERIES;
    coverage_unite(&united->covered, &shared->covered);
    coverage_unite(&united->covered, covered);
    groups->covered_bytes += sizeof(*united) + coverage_memory(&united->covered);
    return united;
}

static void add_coverage(struct range_groups *groups, struct group *group, uint32_t series,
                         const struct coverage *covered)
{
    struct shared_coverage *shared = group->covered ? group->covered : &groups->uncovered;
    if (shared->united_series != series) {
        unref_coverage(groups, shared->united);
        shared->united = unite(groups, shared, covered);
        shared->united->user_count = 1;
        shared->united_series = series;
    }
    struct shared_coverage *before = group->covered;
    group->covered = shared->united;
    group->covered->user_count++;
    unref_coverage(groups, before);
}

void range_groups_cover(struct range_groups *groups, uint32_t number, uint32_t series,
                        const struct coverage *covered)
{
    struct group *group = number < groups->capacity ? &groups->groups[number] : NULL;
    const bool is_wanted = group && (groups->is_second_pass ? group->is_wanted : group->is_there);
    if (is_wanted && !group->cells && groups->last_series != series) {
        coverage_unite(&groups->rest_covered, covered);
        groups->last_series = series;
    }
    if (!is_wanted || !group->cells || group->last_series == series)
        return;
    group->last_series = series;
    add_coverage(groups, group, series, covered);
}

/* ---- the largest ---- */

struct ranked {
    uint32_t number;
    unsigned __int128 magnitude;
};

struct ranking {
    int (*order)(void *context, uint32_t one, uint32_t other);
    void *context;
};

static int compare_ranked(const void *a, const void *b, void *context)
{
    const struct ranking *ranking = context;
    const struct ranked *x = a, *y = b;
    if (x->magnitude != y->magnitude)
        return x->magnitude > y->magnitude ? -1 : 1;
    return ranking->order(ranking->context, x->number, y->number);
}

static int compare_numbers(const void *a, const void *b, void *context)
{
    const struct ranking *ranking = context;
    return ranking->order(ranking->context, *(const uint32_t *)a, *(const uint32_t *)b);
}

static struct ranked *rank_all(const struct range_groups *groups)
{
    struct ranked *ranked = mem_new(struct ranked, groups->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < groups->capacity; i++) {
        if (!groups->groups[i].is_there)
            continue;
        const __int128 total = groups->groups[i].total;
        const unsigned __int128 magnitude =
            total < 0 ? -(unsigned __int128)total : (unsigned __int128)total;
        ranked[count++] = (struct ranked){.number = i, .magnitude = magnitude};
    }
    return ranked;
}

/* Frees the cells of a group that was not chosen, after its covered time has been added to
 * rest_covered. *united: the last one that was added, because many groups share one. */
static void drop_group(struct range_groups *groups, struct group *group,
                       const struct shared_coverage **united)
{
    if (group->covered && group->covered != *united)
        coverage_unite(&groups->rest_covered, &group->covered->covered);
    *united = group->covered;
    groups->with_cells -= group->cells != NULL;
    mem_free(group->cells);
    group->cells = NULL;
    unref_coverage(groups, group->covered);
    group->covered = NULL;
}

/* Allocates the cells that chosen groups lack, after it has freed those of all other groups.
 * Returns whether any were missing. ranked begins with the chosen groups. */
static bool make_missing_cells(struct range_groups *groups, const struct ranked *ranked)
{
    const struct shared_coverage *united = NULL;
    bool are_missing = false;
    for (uint32_t i = groups->chosen_count; i < groups->count; i++)
        drop_group(groups, &groups->groups[ranked[i].number], &united);
    for (uint32_t i = 0; i < groups->chosen_count; i++) {
        struct group *group = &groups->groups[ranked[i].number];
        if (group->cells)
            continue;
        group->cells = mem_new(struct cell, groups->step_count);
        groups->with_cells++;
        group->last_series = NO_SERIES;
        group->is_wanted = are_missing = true;
    }
    return are_missing;
}

bool range_groups_choose(struct range_groups *groups,
                         int (*order)(void *context, uint32_t one, uint32_t other), void *context)
{
    struct ranking ranking = {.order = order, .context = context};
    struct ranked *ranked = rank_all(groups);
    groups->is_second_pass = true;
    if (groups->count > groups->max_chosen)
        qsort_r(ranked, groups->count, sizeof(*ranked), compare_ranked, &ranking);
    groups->chosen_count = groups->count < groups->max_chosen ? groups->count : groups->max_chosen;
    groups->chosen = mem_new(uint32_t, groups->chosen_count);
    for (uint32_t i = 0; i < groups->chosen_count; i++)
        groups->chosen[i] = ranked[i].number;
    if (groups->chosen_count)
        qsort_r(groups->chosen, groups->chosen_count, sizeof(*groups->chosen), compare_numbers,
                &ranking);
    const bool are_missing = make_missing_cells(groups, ranked);
    mem_free(ranked);
    return are_missing;
}

bool range_groups_wants(const struct range_groups *groups, uint32_t group)
{
    return group < groups->capacity && groups->groups[group].is_wanted;
}

/* ---- results ---- */

uint32_t range_groups_count(const struct range_groups *groups)
{
    return groups->count;
}

uint32_t range_groups_chosen(const struct range_groups *groups, const uint32_t **ret_groups)
{
    *ret_groups = groups->chosen;
    return groups->chosen_count;
}

static bool read_cell(const struct cell *cell, __int128 *ret_value)
{
    if (cell->is_there)
        *ret_value = cell->sum;
    return cell->is_there;
}

bool range_groups_value(const struct range_groups *groups, uint32_t group, uint32_t step,
                        __int128 *ret_value)
{
    return read_cell(&groups->groups[group].cells[step], ret_value);
}

bool range_groups_all_value(const struct range_groups *groups, uint32_t step, __int128 *ret_value)
{
    return read_cell(&groups->all[step], ret_value);
}

bool range_groups_rest(const struct range_groups *groups, uint32_t step, __int128 *ret_value)
{
    __int128 rest, value;
    if (!range_groups_all_value(groups, step, &rest))
        return false;
    for (uint32_t i = 0; i < groups->chosen_count; i++) {
        if (range_groups_value(groups, groups->chosen[i], step, &value))
            rest -= value;
    }
    *ret_value = rest;
    return true;
}

const struct coverage *range_groups_covered(const struct range_groups *groups, uint32_t group)
{
    const struct shared_coverage *shared = groups->groups[group].covered;
    return shared ? &shared->covered : &groups->uncovered.covered;
}

const struct coverage *range_groups_rest_covered(const struct range_groups *groups)
{
    return &groups->rest_covered;
}

size_t range_groups_memory(const struct range_groups *groups)
{
    if (!groups)
        return 0;
    return sizeof(*groups) + groups->capacity * sizeof(*groups->groups) +
           ((size_t)groups->with_cells + 1) * groups->step_count * sizeof(struct cell) +
           groups->chosen_count * sizeof(*groups->chosen) + groups->covered_bytes +
           coverage_memory(&groups->rest_covered);
}
