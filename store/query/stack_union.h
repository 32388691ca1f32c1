/*
 * stack_union: stacks of any number of blocks as one list, and the profile that they make.
 *
 * Each stack has `width` sums, for as many questions asked at once. A stack of rows with other
 * labels (a group, store/query/row_labels.h) is another one. Blocks are borrowed until the union
 * ends. Threads: a union belongs to one thread. Private to the room.
 */
#ifndef STORE_QUERY_STACK_UNION_H
#define STORE_QUERY_STACK_UNION_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;
struct profile;
struct row_labels;
struct stack_union;

struct stack_union *stack_union_create(uint32_t width);
void stack_union_destroy(struct stack_union *stacks); /* NULL is a no-op */

/* Adds sums, one per stack of the block, to column `column` of a group; those that are 0 are not
 * there. Sums must stay below 2^63. */
void stack_union_add(struct stack_union *stacks, const struct block *block, const int64_t *sums,
                     uint32_t column, uint32_t group);

/* The number here of one stack of the block. */
uint32_t stack_union_number(struct stack_union *stacks, const struct block *block, uint32_t stack,
                            uint32_t group);

uint32_t stack_union_count(const struct stack_union *stacks);
size_t stack_union_memory(const struct stack_union *stacks);
/* The sums of one stack. */
int64_t *stack_union_sums(struct stack_union *stacks, uint32_t stack);

/* What rows that are left out have together, column 0 of the group ROW_LABELS_LEFT_OUT: its stack
 * is the empty one, and no part of a profile. *ret_count: the stacks of the other groups. */
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

/*
 * A profile of one value type: of each stack its sum in column 0; those of 0 are left out. Samples
 * have the labels of their groups. The caller destroys *ret_profile. Handles: ERR_TOO_LARGE (limits
 * of lib/profile).
 */
enum err_code stack_union_profile(struct stack_union *stacks, const struct stack_union_type *type,
                                  struct profile **ret_profile, struct err *err) MUST_USE;

#endif
