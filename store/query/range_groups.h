/*
 * range_groups: values over time of the groups of a query: the largest groups have a value per
 * step, all others are one sum per step together.
 *
 * Memory does not grow with groups x steps. A group's total takes one number; steps take a cell
 * each, and only as many groups as fit into a budget have them from the start. When a group that
 * turns out to be among the largest has none, the caller adds everything a second time, and its
 * cells are filled then. The results are exact either way. Threads: an object belongs to one.
 * Private to store/.
 */
#ifndef STORE_QUERY_RANGE_GROUPS_H
#define STORE_QUERY_RANGE_GROUPS_H

#include "store/query/coverage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range_groups;

/* max_chosen: how many groups keep their steps; at least 1. cell_budget_bytes: more groups than
 * max_chosen have cells in the first pass while these fit. */
struct range_groups *range_groups_create(uint32_t step_count, uint32_t max_chosen,
                                         size_t cell_budget_bytes);
void range_groups_destroy(struct range_groups *groups); /* NULL is a no-op */

/* Adds to a step of the group. In the second pass it counts only for groups whose cells are being
 * filled. */
void range_groups_add(struct range_groups *groups, uint32_t group, uint32_t step, __int128 sum);
/* A series of the group covers this time: after its values are added, once for each series or
 * several times in a row. Groups that have only a total have no covered time. */
void range_groups_cover(struct range_groups *groups, uint32_t group, uint32_t series,
                        const struct coverage *covered);

/*
 * Ends the first pass: chooses the max_chosen groups of the largest totals by magnitude; order
 * decides between equal ones. True: some of them lack cells, and a second pass must add all values
 * of groups that range_groups_wants again.
 */
bool range_groups_choose(struct range_groups *groups,
                         int (*order)(void *context, uint32_t one, uint32_t other), void *context);
bool range_groups_wants(const struct range_groups *groups, uint32_t group);

/* How many groups there are, chosen or not. */
uint32_t range_groups_count(const struct range_groups *groups);
/* The chosen groups, by the caller's order. */
uint32_t range_groups_chosen(const struct range_groups *groups, const uint32_t **ret_groups);
/* False: the group has nothing in this step. */
bool range_groups_value(const struct range_groups *groups, uint32_t group, uint32_t step,
                        __int128 *ret_value);
/* The sum of all groups, likewise. */
bool range_groups_all(const struct range_groups *groups, uint32_t step, __int128 *ret_value);
/* The value of all other groups: the sum of all groups without the values of the chosen ones.
 * False: no group has anything in this step. */
bool range_groups_rest(const struct range_groups *groups, uint32_t step, __int128 *ret_value);
/* The time that the series of a chosen group cover, and those of all groups. */
const struct coverage *range_groups_covered(const struct range_groups *groups, uint32_t group);
const struct coverage *range_groups_all_covered(const struct range_groups *groups);

size_t range_groups_memory(const struct range_groups *groups);

#endif
