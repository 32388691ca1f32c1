/*
 * pyroscope_ingest: POST /ingest, the older of Pyroscope's two ways in, which its SDKs for Go and
 * Node and many scripts use.
 *
 * THE QUERY. Of a parameter that is given twice the first counts; unknown ones are passed over, and
 * an empty one is as if it were absent.
 * - name: app{label=value,other=value}; required. Labels that begin with "__" are dropped
 *   ("__session_id__" keeps agents apart where a server adds profiles up in memory); all others go
 *   by lib/profile/batch/batch_labels.h.
 * - from, until: as of lib/base/time_parse.h, so seconds, or milliseconds, microseconds or
 * nanoseconds when they have 13, 16 or 19 digits; now where absent. until is not before from. The
 * time of profiles that have none, and the duration of those that have none.
 * - sampleRate: of folded stacks, per second; 100 where it is absent or no whole number from 0 to
 *   1,000,000,000.
 * - spyName: becomes the label "pyroscope_spy"; "unknown" where absent.
 * - units: "samples" where absent; of folded stacks, see below.
 * - aggregationType: "average" says of folded stacks that they are a level, not to be added; "sum".
 * - format: "lines"; "trie", "tree" and "jfr" are known and not read; with "pprof", "folded",
 *   "groups", "collapsed", "speedscope", "perf-script" and "cpuprofile" the bytes decide, as they
 * do without format (lib/profile/formats/format.h). Other values of these two are refused, where
 * Pyroscope takes them for "folded" and "sum".
 *
 * THE BODY is the profile, or a form (multipart/form-data) with these parts; others are passed
 * over:
 * - profile: it, compressed or not; once. An empty one with from and until is folded stacks of
 * which there were none in that time, unless format is pprof or it has a sample_type_config; else
 * it is passed over, without an error.
 * - prev_profile: refused, since agents of before 2023 sent counters to be subtracted.
 * - sample_type_config: JSON: {type: {"units", "display-name", "aggregation", "cumulative",
 *   "sampled"}}. What is displayed may name the profile (batch_type.h), "average" makes a type a
 *   level, cumulative one that counts since the start; the profile itself tells units.
 *
 * PPROF and other formats with types: app is the label "service_name", where that is not given.
 * Values count as those of the profile's time alone unless the configuration says otherwise.
 *
 * FOLDED STACKS AND LINES have counts only. What they count is the end of the app's name behind its
 * last dot: app.cpu, app.itimer and app without such an end are
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds, values × (1 s / sampleRate), app.wall is
 * wall:wall:nanoseconds:cpu:nanoseconds likewise; others keep their values:
 *   alloc_objects inuse_objects alloc_space inuse_space live alloc_…_tlab_objects/bytes      memory
 *   goroutines     goroutine:goroutines:count          exceptions  exceptions:samples:count
 *   mutex_count, block_count, lock_count               mutex or block :contentions:count
 *   mutex_duration, block_duration, lock_duration      mutex or block :delay:nanoseconds
 *   bytes                                              memory:samples:bytes
 * With sampleRate=0 nothing is multiplied: process_cpu:samples:count. An app that has none of these
 * ends is CPU time only when units says "samples". The rest of the name is "service_name", or
 * "app_name" where the former is given.
 * Threads: any.
 */
#ifndef LIB_PROFILE_PYROSCOPE_PYROSCOPE_INGEST_H
#define LIB_PROFILE_PYROSCOPE_PYROSCOPE_INGEST_H

#include "lib/profile/batch/batch_from_profile.h"

struct pyroscope_ingest_query {
    struct span app;
    const struct batch_text_label *labels; /* of name; checked, not sorted */
    size_t label_count;
    int64_t from_ns;
    int64_t until_ns;
    uint32_t sample_rate;
    struct span spy_name;
    struct span units;
    struct span aggregation;
    struct span format;
};

/* text is the query as it stands in the address, without "?". Everything lies in arena. Handles:
 * ERR_INVALID (the message names the parameter), ERR_TOO_LARGE (more or longer labels than any
 * series has).
 */
enum err_code pyroscope_ingest_parse_query(struct arena *arena, struct span text, int64_t now_ns,
                                           struct pyroscope_ingest_query *ret_query,
                                           struct err *err) MUST_USE;

/* The app's service, as far as the query alone says what the body is. */
struct span pyroscope_ingest_service(const struct pyroscope_ingest_query *query);

/*
 * The profile of body, ready for batch_from_profile: the caller owns ret_source->profile, which is
 * NULL when it is empty and says nothing (that is no error to Pyroscope's agents); the rest lies in
 * arena. limits may be NULL. Handles: ERR_INVALID, ERR_UNSUPPORTED, ERR_TOO_LARGE.
 */
enum err_code pyroscope_ingest_decode(struct arena *arena,
                                      const struct pyroscope_ingest_query *query,
                                      struct span content_type, struct span body,
                                      const struct profile_limits *limits,
                                      struct batch_source *ret_source, struct err *err) MUST_USE;

#endif
