/*
 * dictionary_union: the dictionaries of several blocks as one, for the block that replaces them.
 *
 * Frames are the same where their hashes are (store/block/stack_hashes.h), so all blocks must have
 * been opened with one seed. Strings are sorted, so that what they share with the one before is
 * long; locations by file and address; stacks by frames. Memory is of the result and a number per
 * stack and frame of each input. Private to the room. Threads: any, one union belongs to one.
 */
#ifndef STORE_BLOCK_DICTIONARY_UNION_H
#define STORE_BLOCK_DICTIONARY_UNION_H

#include "store/block/block_read.h"

/* What an input's numbers are in the union. */
struct dictionary_numbers {
    const uint32_t *stacks;
    const uint32_t *label_sets;
    const uint32_t *series;
};

struct dictionary_union {
    struct dictionary dictionary;
    const struct dictionary_numbers *inputs;
};

/* What the output needs of an input, by its numbers where it is some of it. */
struct dictionary_use {
    enum { DICTIONARY_ALL, DICTIONARY_SOME, DICTIONARY_NONE } what;
    bool *stacks;
    bool *label_sets;
    bool *series;
};

/*
 * In arena; strings are borrowed from the blocks. uses: of each block what is needed, of one at
 * least something: the rest is left out, its numbers are meaningless. Handles: ERR_TOO_LARGE (more
 * nodes than a block may have).
 */
enum err_code dictionary_union_create(struct arena *arena, const struct block *const *blocks,
                                      uint32_t block_count, const struct dictionary_use *uses,
                                      struct dictionary_union *ret_union, struct err *err) MUST_USE;

#endif
