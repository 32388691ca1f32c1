/*
 * batch_from_profile: converts a decoded profile and the labels of its source to a batch.
 *
 * Each value type of the profile becomes a series with one profile. lib/profile/batch/batch_type.h
 * derives its name and its kind: a delta, or a gauge or counter, of which a profile is a snapshot.
 * Values that are 0 make no sample. A profile without samples is stored, too: a delta records that
 * its series was idle for its duration, a snapshot is 0. If several value types have equal type and
 * unit, only the first is used.
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
 * a series of their own; the label replaces one of the same name that the source has. Labels of
 * series are taken from samples of deltas only: gauges and counters keep them with their samples,
 * because means and increases of a part need its zeros, too. If all values of a type are 0 in the
 * samples of such a series, the series is recorded as idle; one that had no sample at all is not
 * known here and not recorded. Idle deltas are left out if the batch would otherwise exceed its
 * limit of series.
 *
 * Frames that drop_frames of the profile removes (prune.h) are left out of the stacks, as reports
 * of shares do. An expression that cannot be used removes nothing, with a notice.
 *
 * Only the profile's array of strings (names of labels and types are appended), the starts of its
 * stacks and the labels of its distinct label sets are copied (with drop_frames, the locations and
 * stacks, too): stack i + 1 is that of the profile's sample i. A request with several profiles
 * becomes several batches. Threads: any.
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
    /* The sender states that the values cover only the profile's time, so that the server need not
     * subtract those of the profile before: is_delta of batch_type_kind. */
    bool is_ready;
    /* The beginning (since 1970) and the duration that the request states; 0: not stated. They are
     * used if the profile has none, or has a time before 1971 (in a wrong unit); this duration does
     * not affect the kind of the values. If the profile's own time is in the second half of this
     * window, it is taken for the profile's end, as Pyroscope's SDK for Node and Go's memory
     * profiles write it. Deltas then begin a duration earlier. */
    int64_t time_ns;
    int64_t duration_ns;
};

struct batch_options {
    const struct batch_limits *limits; /* NULL: all defaults */
    /* The session becomes a label only within these limits; otherwise it is left out, with a
     * notice. NULL: the same as limits. */
    const struct batch_limits *session_limits;
    /* Text labels of samples that become labels of series; normalized names (batch_labels.h). */
    const struct span *series_labels;
    uint32_t series_label_count;
};

/* The profile's own time; 0 if it has none, or one before 1971, which batch_source.time_ns
 * replaces. */
int64_t batch_own_time_ns(const struct profile *profile);

/*
 * On success the batch owns source->profile, whose arena becomes the batch's, and the caller
 * destroys *ret_batch. On failure the caller still owns the profile. The rest of source is needed
 * only during the call. options may be NULL. Errors: ERR_INVALID (a label, the name, the time,
 * decimals that are too large, or only values that are left out), ERR_TOO_LARGE (limits); messages
 * name the label.
 */
enum err_code batch_from_profile(const struct batch_source *source,
                                 const struct batch_options *options, struct batch **ret_batch,
                                 struct err *err) MUST_USE;

#endif
