/*
 * stack_union: the stacks of any number of blocks as one list with sums, and the profile that they
 * make.
 *
 * Each stack has `width` sums. The same stack in another group (rows with other labels,
 * store/query/row_labels.h) is another one. Blocks are borrowed until the union is destroyed.
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

struct stack_union *stack_union_create(uint32_t width);
void stack_union_destroy(struct stack_union *stacks); /* NULL is a no-op */

/* Adds sums, one per stack of the block, to column `column` of a group; stacks whose sum is 0 are
 * not added. Sums must stay below 2^63. */
void stack_union_add(struct stack_union *stacks, const struct block *block, const int64_t *sums,
                     uint32_t column, uint32_t group);

/* The number in the union of a stack of the block, which is added if it is new. */
uint32_t stack_union_number(struct stack_union *stacks, const struct block *block, uint32_t stack,
                            uint32_t group);

uint32_t stack_union_count(const struct stack_union *stacks);
size_t stack_union_memory(const struct stack_union *stacks);
/* The sums of one stack; valid until a stack is added. */
int64_t *stack_union_sums(struct stack_union *stacks, uint32_t stack);

/* The sum of the rows that the label filter leaves out: column 0 of the empty stack in group
 * ROW_LABELS_LEFT_OUT, which is no part of a profile. *ret_count: the number of stacks of the other
 * groups. */
int64_t stack_union_left_out(struct stack_union *stacks, uint32_t *ret_count);

struct stack_union_type {
    const char *sample_type; /* texts */
    const char *sample_unit;
    const char *period_type;
    const char *period_unit;
    int64_t period;
    int64_t time_ns;
    int64_t duration_ns;
    const struct row_labels *labels; /* of the groups */
};

/* Makes a profile of one value type: per stack its sum in column 0, without those of 0. Samples
 * have the labels of their groups. The caller destroys *ret_profile. Handles: ERR_TOO_LARGE (limits
 * of lib/profile). */
enum err_code stack_union_profile(struct stack_union *stacks, const struct stack_union_type *type,
                                  struct profile **ret_profile, struct err *err) MUST_USE;

#endif
