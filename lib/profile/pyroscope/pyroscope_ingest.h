/*
 * pyroscope_ingest: POST /ingest, the older upload protocol of Pyroscope, which its SDKs for Go and
 * Node and many scripts use.
 *
 * QUERY. If a parameter is given twice, the first counts. Unknown parameters are ignored, and an
 * empty one counts as absent.
 *
 * - name: app{label=value,other=value}; required. Labels that begin with "__" are dropped, but
 * "__session_id__" distinguishes processes with equal labels: equal profiles of two sessions are
 * not repetitions (api/ingest/batch_id.h), and the session becomes the label "session_id" of series
 * of gauges and counters (lib/profile/batch/batch_from_profile.h). All others follow
 * lib/profile/batch/batch_labels.h.
 * - from, until: as in lib/input/time_parse.h, so seconds, or milliseconds, microseconds or
 * nanoseconds if they have 13, 16 or 19 digits; default: now. until must not precede from. The time
 * from `from` to `until` is used for profiles without a time or a duration, and shows whether a
 * profile's own time is its beginning or its end (lib/profile/batch/batch_from_profile.h).
 * - sampleRate: of folded stacks, per second; 100 if it is absent or not a whole number from 0 to
 * 1,000,000,000.
 * - spyName: becomes the label "pyroscope_spy"; default "unknown".
 * - units: default "samples"; for folded stacks, see below.
 * - aggregationType: "average" declares folded stacks as a gauge, which must not be added; "sum".
 * - format: "lines"; "trie", "tree" and "jfr" are recognized and refused; with "pprof", "folded",
 * "groups", "collapsed", "speedscope", "perf-script" and "cpuprofile", and without format, the
 * bytes decide (lib/profile/formats/format.h).
 *
 * Other values of format and aggregationType are refused. Pyroscope takes them for "folded" and
 * "sum".
 *
 * BODY. The profile, or a form (multipart/form-data) with the following parts; others are ignored.
 *
 * - profile: required once, compressed or not. If it is empty and from precedes until, no stack was
 * counted in that time, unless format is pprof or there is a sample_type_config. Any other empty
 * one is ignored without an error.
 * - prev_profile: refused; agents before 2023 sent counters to be subtracted.
 * - sample_type_config: JSON: {type: {"units", "display-name", "aggregation", "cumulative",
 * "sampled"}}. A display name may name the profile (batch_type.h), "average" makes a type a gauge,
 * "cumulative" a counter since the start; units are those of the profile.
 *
 * PPROF and other formats with types: app becomes the label "service_name", unless that is given.
 * Values count for the profile's time only, unless the configuration states otherwise.
 *
 * FOLDED STACKS AND LINES contain only counts. The part of the app's name after its last dot is the
 * type: app.cpu, app.itimer and an app without a known type are
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds, values × (1 s / sampleRate); app.wall is
 * wall:wall:nanoseconds:cpu:nanoseconds likewise, and so are app.seconds, .milliseconds,
 * .microseconds and .nanoseconds; others keep their values:
 *
 *   alloc_objects inuse_objects alloc_space inuse_space live alloc_…_tlab_objects/bytes      memory
 *   goroutines     goroutine:goroutines:count          exceptions  exceptions:samples:count
 *   mutex_count, block_count, lock_count               mutex or block :contentions:count
 *   mutex_duration, block_duration, lock_duration      mutex or block :delay:nanoseconds
 *   bytes                                              memory:samples:bytes
 *
 * With sampleRate=0 nothing is multiplied: process_cpu:samples:count or wall:samples:count. An app
 * without a known type is refused unless units is "samples". The name without the type becomes the
 * label "service_name", or "app_name" if the sender gives a service_name. Threads: any.
 */
#ifndef LIB_PROFILE_PYROSCOPE_PYROSCOPE_INGEST_H
#define LIB_PROFILE_PYROSCOPE_PYROSCOPE_INGEST_H

#include "lib/profile/batch/batch_from_profile.h"

struct pyroscope_ingest_query {
    struct span app; /* the name without its labels */
    /* The labels of the name, valid but as the sender writes them: not normalized, not sorted. */
    const struct batch_text_label *labels;
    size_t label_count;
    struct span session; /* "__session_id__"; may be empty */
    int64_t from_ns;     /* since 1970 */
    int64_t until_ns;
    uint32_t sample_rate;
    struct span spy_name;
    struct span units;
    struct span aggregation;
    struct span format;
};

/* Parses the query of an address, without "?". The result is in arena; texts without a value have
 * their defaults. Errors: ERR_INVALID (the
 * message names the parameter), ERR_TOO_LARGE (more or longer labels than any series may have). */
enum err_code pyroscope_ingest_parse_query(struct arena *arena, struct span text, int64_t now_ns,
                                           struct pyroscope_ingest_query *ret_query,
                                           struct err *err) MUST_USE;

/* The service that the app's name contains, as far as the query alone determines it, to name the
 * source before the body is decoded: the whole name for format pprof, else the name without a known
 * type. Borrowed from query. */
struct span pyroscope_ingest_service(const struct pyroscope_ingest_query *query);

/*
 * Decodes the body for batch_from_profile. The caller owns ret_source->profile, which is NULL if
 * the profile is empty and ignored (not an error for Pyroscope's agents). The rest of *ret_source
 * is in arena or borrowed from query and the profile. limits may be NULL. Errors: ERR_INVALID,
 * ERR_UNSUPPORTED (a format), ERR_TOO_LARGE (limits).
 */
enum err_code pyroscope_ingest_decode(struct arena *arena,
                                      const struct pyroscope_ingest_query *query,
                                      struct span content_type, struct span body,
                                      const struct profile_limits *limits,
                                      struct batch_source *ret_source, struct err *err) MUST_USE;

#endif
