/*
 * batch_groups: the labels of the series of a batch. Private to batch_from_profile.c.
 *
 * Labels of samples that become labels of series split the profile into groups
 * (batch_sample_labels.h); the series of a group have the same labels. Snapshots belong to group 0,
 * or to one more group if their series have the session as a label.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_GROUPS_H
#define LIB_PROFILE_BATCH_BATCH_GROUPS_H

#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/batch/batch_sample_labels.h"

/* The labels of the series of a group, validated and sorted. */
struct batch_group {
    struct batch_text_label *labels;
    size_t label_count;
};

struct batch_groups {
    /* Set by the caller. */
    struct arena *scratch; /* for the results */
    const struct batch_source *source;
    const struct batch_options *options;
    struct batch_limits limits;
    const struct batch_sample_labels *split;
    const char *notice; /* of the batch; NULL: none yet */
    /* Set by batch_groups_make. */
    struct batch_group *groups;
    uint32_t count;          /* one more than split has if snapshots have a session */
    uint32_t snapshot_group; /* the group of snapshots: the additional one, or 0 */
};

/* has_snapshots: a value type of the profile is a gauge or counter. Errors: those of
 * batch_labels_check. */
enum err_code batch_groups_make(struct batch_groups *groups, bool has_snapshots,
                                struct err *err) MUST_USE;

#endif
