/*
 * range_groups: values over time of the groups of a query: each of the largest groups has one value
 * per step; all other groups together have one sum per step.
 *
 * Memory does not grow with groups x steps. Each group has a total over all steps, which is one
 * number. A cell per step is allocated at first only for as many groups as fit into a budget. If a
 * group that turns out to be among the largest has no cells, the caller adds the values of such
 * groups a second time. The results are exact either way. The order of calls:
 *
 *   range_groups_add, range_groups_cover    for each series: the first pass
 *   range_groups_choose                     once; chooses the largest groups
 *   range_groups_add, range_groups_cover    only if it returned true: again, for each series with a
 *                                           group for which range_groups_wants is true
 *   the functions that read values and covered times
 *
 * Groups are numbered by the caller; an array is as long as the highest number. Threads: an object
 * belongs to one. Private to store/.
 */
#ifndef STORE_QUERY_RANGE_GROUPS_H
#define STORE_QUERY_RANGE_GROUPS_H

#include "store/values/coverage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range_groups;

/* max_chosen: the number of groups that are chosen and keep their cells; at least 1.
 * cell_budget_bytes: in the first pass groups get cells as long as all cells fit into so many
 * bytes; the first max_chosen groups always get them. */
struct range_groups *range_groups_create(uint32_t step_count, uint32_t max_chosen,
                                         size_t cell_budget_bytes);
void range_groups_destroy(struct range_groups *groups); /* NULL is a no-op */

/* Adds a sum to a step of the group; step is below step_count. In the second pass this changes only
 * groups for which range_groups_wants is true. */
void range_groups_add(struct range_groups *groups, uint32_t group, uint32_t step, __int128 sum);
/* Adds the time that a series of the group covers. The group must have a value already. A call that
 * repeats the series of the group's last call does nothing, so all calls of one series must be made
 * before those of the next series. */
void range_groups_cover(struct range_groups *groups, uint32_t group, uint32_t series,
                        const struct coverage *covered);

/*
 * Ends the first pass: chooses the max_chosen groups whose totals have the largest absolute values;
 * order decides between equal ones. True: some chosen groups lack cells, so the caller has to add
 * all values of the groups for which range_groups_wants is true a second time.
 */
bool range_groups_choose(struct range_groups *groups,
                         int (*order)(void *context, uint32_t one, uint32_t other), void *context);
/* True for a chosen group that had no cells when it was chosen; always false before the choice. */
bool range_groups_wants(const struct range_groups *groups, uint32_t group);

/* ---- results, after range_groups_choose and the second pass ---- */

/* How many groups there are, chosen or not. */
uint32_t range_groups_count(const struct range_groups *groups);
/* The chosen groups, by the caller's order. */
uint32_t range_groups_chosen(const struct range_groups *groups, const uint32_t **ret_groups);
/* The value of a chosen group, which alone has cells. False: the group has nothing in this step. */
bool range_groups_value(const struct range_groups *groups, uint32_t group, uint32_t step,
                        __int128 *ret_value);
/* The sum of all groups, chosen or not. False: no group has anything in this step. */
bool range_groups_all_value(const struct range_groups *groups, uint32_t step, __int128 *ret_value);
/* The value of the groups that were not chosen: the sum of all groups minus the chosen ones.
 * False: no group has anything in this step. */
bool range_groups_rest(const struct range_groups *groups, uint32_t step, __int128 *ret_value);
/* The time that the series of a chosen group cover. */
const struct coverage *range_groups_covered(const struct range_groups *groups, uint32_t group);
/* The time that the series of the groups that were not chosen cover. If chosen groups lacked cells,
 * it may contain the time of their series too. */
const struct coverage *range_groups_rest_covered(const struct range_groups *groups);

size_t range_groups_memory(const struct range_groups *groups);

#endif
