/*
 * batch_from_profile: a decoded profile and the labels of where it comes from, as a batch.
 *
 * Each value type of the profile becomes a series, named by lib/profile/batch/batch_type.h, of
 * which the profile is one. It has a duration and is_delta where its values are of the profile's
 * time alone. Values that are 0 make no sample. A profile without samples is one all the same: a
 * delta says that its series was idle for its duration, a level or counter (batch_type.h) is a
 * snapshot of 0. Of value types that are equal in type and unit the first counts.
 *
 * Decimals have one unit in all series, "count/1000000", whatever power of ten a file needed
 * (folded.h), because the unit is a part of the series' type. Values stay exact; one that would
 * pass an int64 is refused. A file of whole numbers stays "count", which is another type: many such
 * files count nanoseconds or bytes, and a million times these pass an int64 within minutes (64
 * processors use 9.2e12 ns in 144 s). A tool whose decimals are sometimes all 0 therefore writes
 * "12.0".
 *
 * Labels of samples stay with them, as label sets: equal lists are one. Two kinds are taken out:
 * texts under "span_id" (16 hexadecimal digits) and "trace_id" (32) become the set's link, and the
 * names that the options list become labels of series, whose samples then are a series of their
 * own; they replace labels of that name which the source has. That is so of deltas alone: levels
 * and counters keep them with their samples, since means and gains of a part need its zeros, too.
 * A series with the labels of some sample is idle where all values of a type are 0 there; one that
 * no sample of the profile has is not known here. Idle series are left out where the batch would
 * have more series than the limit with them.
 *
 * Nothing of the profile is copied but the array of its strings (labels and names of types are
 * added to them), its stacks' starts and the labels of its different label sets: stack i + 1 is
 * that of the profile's sample i.
 * A request with several profiles is several batches. Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_FROM_PROFILE_H
#define LIB_PROFILE_BATCH_BATCH_FROM_PROFILE_H

#include "lib/profile/batch/batch.h"
#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/batch/batch_type.h"

struct batch_source {
    struct profile *profile;
    struct span name;                      /* of the types; empty: it is made of them */
    const struct batch_text_label *labels; /* in any order */
    size_t label_count;
    const enum batch_kind *kinds; /* what the sender says of each value type; NULL: nothing */
    bool is_ready;                /* the sender says that values are of the profile's time alone */
    int64_t time_ns;     /* for a profile without a time, or with one before 1971 (other units) */
    int64_t duration_ns; /* for a profile without a duration; says nothing about its values */
};

struct batch_options {
    const struct batch_limits *limits; /* NULL: all defaults */
    /* Text labels of samples that become labels of series; clean names (batch_labels.h). */
    const struct span *series_labels;
    uint32_t series_label_count;
};

/* The profile's own time; 0 where it has none, or one before 1971, which the source's replaces. */
int64_t batch_own_time_ns(const struct profile *profile);

/*
 * On success the batch has taken source->profile over: its arena is the batch's. Otherwise it stays
 * the caller's. The rest of source is needed until the return only. options may be NULL.
 * Handles: ERR_INVALID (a label, the time, decimals that are too large), ERR_TOO_LARGE (limits);
 * messages name the label.
 */
enum err_code batch_from_profile(const struct batch_source *source,
                                 const struct batch_options *options, struct batch **ret_batch,
                                 struct err *err) MUST_USE;

#endif
