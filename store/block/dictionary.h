/*
 * dictionary: the strings, locations, stacks, label sets and series that the rows of a block refer
 * to by number.
 *
 * tables contains strings, mappings, functions, lines and locations as in lib/profile/profile.h,
 * and no samples. Frames of stacks are its locations, labels are its strings. Addresses of mappings
 * that are known (by build id or file) are offsets in the file: start equals offset. Series are
 * ordered by type and labels (dictionary_compare_series); label set 0 is the empty one.
 *
 * Threads: a dictionary is immutable.
 */
#ifndef STORE_BLOCK_DICTIONARY_H
#define STORE_BLOCK_DICTIONARY_H

#include "lib/profile/batch/batch.h"
#include "store/block/stacks.h"

struct dictionary {
    const struct profile *tables;
    struct stacks stacks;
    const struct batch_label_set *label_sets;
    const struct profile_label *sample_labels;
    const struct batch_series *series;
    const struct batch_label *series_labels;
    uint32_t label_set_count; /* at least 1 */
    uint32_t sample_label_count;
    uint32_t series_count;
    uint32_t series_label_count;
    size_t string_bytes;        /* of all strings; only in a dictionary that was read */
    bool has_few_strings;       /* strings of frames are empty: it was read without stacks */
    const uint32_t *label_keys; /* distinct keys of sample_labels; only in one that was read */
    uint32_t label_key_count;
};

/* The part of a batch that its samples use, as a dictionary, and the numbers that the batch's
 * stacks and series have in it. It is in arena and borrows the bytes of strings from the batch. */
struct dictionary_of_batch {
    struct dictionary dictionary;
    const uint32_t *stacks; /* per stack of the batch */
    const uint32_t *series; /* per series of the batch */
};

/* Errors: ERR_TOO_LARGE (more than STACKS_NODES_MAX nodes). */
enum err_code dictionary_of_batch(struct arena *arena, const struct batch *batch,
                                  struct dictionary_of_batch *ret_result, struct err *err) MUST_USE;

/* The label of a series to which a sender's name of a label is normalized
 * (lib/profile/batch/batch_labels.h); NULL: the series has no such label. */
const struct batch_label *dictionary_find_label(const struct dictionary *dictionary,
                                                uint32_t series, struct span sent_name);
/* Whether sent_name, which differs from name, is normalized to name in series. */
bool dictionary_becomes(struct span sent_name, struct span name);

/* Compares series by type, then by labels, as bytes: <0, 0, >0. They may be of two dictionaries. */
int dictionary_compare_series(const struct dictionary *a, uint32_t series_of_a,
                              const struct dictionary *b, uint32_t series_of_b);

#endif
