/*
 * dictionary_union: unites the dictionaries of several blocks, for the block that replaces them.
 *
 * Frames are equal when their hashes are (store/block/stack_hashes.h), so all blocks must have been
 * opened with one seed. Strings are sorted, so that each shares a long prefix with the one before;
 * locations are ordered by file and address, stacks by frames. Memory: the result, and a number per
 * stack and frame of each input.
 *
 * Threads: any; one union belongs to one thread. Private to store/.
 */
#ifndef STORE_BLOCK_DICTIONARY_UNION_H
#define STORE_BLOCK_DICTIONARY_UNION_H

#include "store/block/block_read.h"

/* Numbers of an input's objects in the union. */
struct dictionary_numbers {
    const uint32_t *stacks;
    const uint32_t *label_sets;
    const uint32_t *series;
};

struct dictionary_union {
    struct dictionary dictionary;
    const struct dictionary_numbers *inputs;
};

/* Which part of an input the output needs; the arrays are used with DICTIONARY_SOME. */
struct dictionary_use {
    enum { DICTIONARY_ALL, DICTIONARY_SOME, DICTIONARY_NONE } what;
    bool *stacks;
    bool *label_sets;
    bool *series;
};

/* Creates the union in arena; strings are borrowed from the blocks. uses[i] states which part of
 * block i is needed; at least one block must be needed. The numbers of parts that are not needed
 * are undefined. Errors: ERR_TOO_LARGE (more nodes than a block may have). */
enum err_code dictionary_union_create(struct arena *arena, const struct block *const *blocks,
                                      uint32_t block_count, const struct dictionary_use *uses,
                                      struct dictionary_union *ret_union, struct err *err) MUST_USE;

#endif
