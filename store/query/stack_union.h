/*
 * stack_union: the stacks of any number of blocks as one list with a sum for each, and the profile
 * that they make.
 *
 * A stack counts once per group (rows with the same labels, store/query/row_labels.h): in two
 * groups it has two numbers and two sums. Blocks are borrowed until the union is destroyed.
 * Threads: a union belongs to one thread. Private to store/.
 */
#ifndef STORE_QUERY_STACK_UNION_H
#define STORE_QUERY_STACK_UNION_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;
struct profile;
struct row_labels;
struct stack_union;

struct stack_union *stack_union_create(void);
void stack_union_destroy(struct stack_union *stacks); /* NULL is a no-op */

/* Adds sums, one per stack of the block, to the sums of these stacks in a group. Stacks whose sum
 * is 0 are not added. The caller makes sure that no total reaches 2^63. */
void stack_union_add(struct stack_union *stacks, const struct block *block, const int64_t *sums,
                     uint32_t group);

/* Returns the number that a stack of the block has in the union; adds the stack if it is new. */
uint32_t stack_union_number(struct stack_union *stacks, const struct block *block, uint32_t stack,
                            uint32_t group);

uint32_t stack_union_count(const struct stack_union *stacks);
size_t stack_union_memory(const struct stack_union *stacks);
/* The sum of one stack, which the caller may change; valid until a stack is added. */
int64_t *stack_union_sum(struct stack_union *stacks, uint32_t stack);
/* A second number of one stack, 0 at first, which the caller may change likewise: the part that
 * tree_rounding subtracts (`starts` in store/query/tree_rounding.h). */
int64_t *stack_union_start(struct stack_union *stacks, uint32_t stack);

/* Sets *ret_sum and *ret_start to the sum and the second number of the stack in group
 * ROW_LABELS_LEFT_OUT, to which the caller added the rows that the label filter left out. Returns
 * the number of stacks in all groups that stay (row_labels_stays). */
uint32_t stack_union_left_out(const struct stack_union *stacks, int64_t *ret_sum,
                              int64_t *ret_start);

struct stack_union_type {
    const char *sample_type; /* this and the next three: as in pprof; borrowed */
    const char *sample_unit;
    const char *period_type;
    const char *period_unit;
    int64_t period;
    int64_t time_ns;
    int64_t duration_ns;
    const struct row_labels *labels; /* which labels the samples of each group get */
    /* Called with the bytes that the samples will take, before they are allocated. NULL: no limit.
     */
    enum err_code (*check_memory)(const void *context, size_t bytes);
    const void *check_context;
};

/* Makes a profile of one value type, with one sample per stack whose sum, or whose second number,
 * is not 0. Samples have the labels of their groups. The caller destroys *ret_profile. *ret_starts:
 * the second number of each sample, in the profile's arena; NULL: all are 0. Errors: ERR_TOO_LARGE
 * (limits of lib/profile), what check_memory returns, which sets *err itself. */
enum err_code stack_union_profile(struct stack_union *stacks, const struct stack_union_type *type,
                                  struct profile **ret_profile, const int64_t **ret_starts,
                                  struct err *err) MUST_USE;

#endif
