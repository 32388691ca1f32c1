/*
 * batch_sample_labels: converts the labels of a profile's samples for a batch. Private to
 * batch_from_profile, whose header defines which of them become labels of series and which a link.
 *
 * Equal lists of labels are found by hash and examined once, so the cost is one hash per sample
 * whose list differs from that of the previous sample.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_SAMPLE_LABELS_H
#define LIB_PROFILE_BATCH_BATCH_SAMPLE_LABELS_H

#include "lib/profile/batch/batch.h"

struct batch_sample_labels {
    /* Per sample, or NULL if 0 for all: its label set without the labels that become labels of
     * series; its label set with them, which snapshots use; its group. */
    const uint32_t *set_of_sample;
    const uint32_t *whole_set_of_sample;
    const uint32_t *group_of_sample;
    const struct batch_label_set *sets;
    const struct profile_label *labels;
    uint32_t set_count;
    uint32_t label_count;
    /* Group g has group_values[g * name_count + i] for the i-th name, 0 for none. Group 0 has no
     * values. */
    const uint32_t *group_values;
    uint32_t group_count;
    uint32_t name_count;
};

/* Allocates the result in the profile's arena. names: the normalized names of labels that become
 * labels of series. has_snapshots: whole_set_of_sample is needed; else it equals set_of_sample.
 * Errors: ERR_TOO_LARGE (more groups than group_limit). */
enum err_code batch_sample_labels_collect(const struct profile *profile, const struct span *names,
                                          uint32_t name_count, bool has_snapshots,
                                          uint32_t group_limit,
                                          struct batch_sample_labels *ret_result,
                                          struct err *err) MUST_USE;

#endif
