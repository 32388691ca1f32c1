/*
 * batch_from_profile: converts a decoded profile and the labels of its source to a batch.
 *
 * Each value type of the profile becomes a series with one profile, named by
 * lib/profile/batch/batch_type.h. The profile has a duration and is_delta if its values cover only
 * the profile's time. Values that are 0 make no sample. A profile without samples is stored, too: a
 * delta records that its series was idle for its duration, a gauge or counter (batch_type.h) is a
 * snapshot of 0. If several value types have equal type and unit, only the first is used.
 *
 * Decimals have one unit in all series, "count/1000000", whatever power of ten a file needed
 * (folded.h), because the unit is a part of the series' type. Values stay exact; one that would
 * exceed int64 is refused. A file of whole numbers keeps "count", which is another type: many such
 * files count nanoseconds or bytes, and a million times these exceed int64 within minutes (64
 * processors use 9.2e12 ns in 144 s). A tool whose decimals are sometimes all 0 therefore has to
 * write "12.0".
 *
 * Labels of samples stay with the samples, as label sets; equal lists share a set. Two kinds are
 * moved: texts under "span_id" (16 hexadecimal digits) and "trace_id" (32) become the link of the
 * set, and the names that the options list become labels of series. Samples with such a label form
 * a series of their own; the label replaces one of the same name that the source has. That applies
 * to deltas only: gauges and counters keep these labels with their samples, because means and
 * increases of a part need its zeros, too. A series with the labels of a sample is idle if all
 * values of a type are 0 there; a series that no sample of the profile has is unknown here. Idle
 * series are left out if the batch would otherwise exceed its limit of series.
 *
 * Only the profile's array of strings (names of labels and types are appended), the starts of its
 * stacks and the labels of its distinct label sets are copied: stack i + 1 is that of the profile's
 * sample i. A request with several profiles becomes several batches. Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_FROM_PROFILE_H
#define LIB_PROFILE_BATCH_BATCH_FROM_PROFILE_H

#include "lib/profile/batch/batch.h"
#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/batch/batch_type.h"

struct batch_source {
    struct profile *profile;
    struct span name;                      /* of the types; empty: derived from them */
    const struct batch_text_label *labels; /* in any order */
    size_t label_count;
    /* Distinguishes processes whose labels are equal, as "__session_id__" does; empty: unknown. */
    struct span session;
    const enum batch_kind *kinds; /* the sender's kind of each value type; NULL: not stated */
    bool is_ready;                /* the sender states that values cover only the profile's time */
    /* The begin and the duration that the request states. They replace those that the profile
     * lacks, or a time before 1971 (other units); the duration does not affect the kind of its
     * values. If the profile's own time is nearer to the end of this window, it is the end of the
     * profile: Pyroscope's SDK for Node and Go's memory profiles write that. Deltas then begin a
     * duration earlier. */
    int64_t time_ns;
    int64_t duration_ns;
};

struct batch_options {
    const struct batch_limits *limits; /* NULL: all defaults */
    /* Limits of labels within which the session becomes one; otherwise it is left out, with a
     * notice. NULL: limits. */
    const struct batch_limits *session_limits;
    /* Text labels of samples that become labels of series; clean names (batch_labels.h). */
    const struct span *series_labels;
    uint32_t series_label_count;
};

/* The time in the profile; 0 if it has none, or one before 1971, which the source's time
 * replaces. */
int64_t batch_own_time_ns(const struct profile *profile);

/*
 * On success the batch owns source->profile: its arena becomes the batch's. On failure the caller
 * still owns it. The rest of source is needed only during the call. options may be NULL. Errors:
 * ERR_INVALID (a label, the time, decimals that are too large), ERR_TOO_LARGE (limits); messages
 * name the label.
 */
enum err_code batch_from_profile(const struct batch_source *source,
                                 const struct batch_options *options, struct batch **ret_batch,
                                 struct err *err) MUST_USE;

#endif
