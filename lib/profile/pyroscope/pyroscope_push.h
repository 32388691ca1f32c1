/*
 * pyroscope_push: parses push.v1.PushRequest, which Pyroscope's SDKs (Rust, Python, Ruby, .NET),
 * Alloy and profilecli post to /push.v1.PusherService/Push, in protobuf or JSON.
 *
 *   PushRequest { series = 1 }      RawProfileSeries { labels = 1, samples = 2 }
 *   LabelPair { name = 1, value = 2 }       RawSample { raw_profile = 1, ID = 2 }
 *
 * In JSON names are lowerCamelCase ("rawProfile") or as above, bytes are base64 (both alphabets,
 * with or without padding). Unknown fields are skipped. Profiles are in any format of
 * lib/profile/formats/format.h, compressed or not; they are not decoded here.
 *
 * Labels that begin with "__" control the server and are not labels of the series. "__name__" names
 * the profile's type; "__delta__" = "false" states that values need no subtraction, because they
 * count for the profile's time only; "__session_id__" is as in /ingest (pyroscope_ingest.h). The
 * others ("__otel__", "__order__", "__sampled__", "__type__", …), which Pyroscope derives itself,
 * are dropped. A series without "service_name" gets "unknown_service". The ID of a sample, which
 * the sender chooses, is passed on unchanged. Threads: any.
 */
#ifndef LIB_PROFILE_PYROSCOPE_PYROSCOPE_PUSH_H
#define LIB_PROFILE_PYROSCOPE_PYROSCOPE_PUSH_H

#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/pyroscope/connect.h"

struct arena;
struct profile_limits;

struct pyroscope_push_series {
    const struct batch_text_label *labels; /* unchecked: batch_from_profile checks them */
    size_t label_count;
    struct span name;    /* "__name__"; may be empty */
    bool is_ready;       /* "__delta__" = "false" */
    struct span session; /* "__session_id__"; may be empty */
};

struct pyroscope_push_profile {
    uint32_t series;   /* index in pyroscope_push.series */
    struct span bytes; /* never empty */
    struct span id;    /* may be empty */
};

struct pyroscope_push {
    const struct pyroscope_push_series *series;
    uint32_t series_count;
    const struct pyroscope_push_profile *profiles; /* in the order of their series */
    uint32_t profile_count;
};

/*
 * *ret_push is in arena; with protobuf it also borrows from body. Samples without bytes are left
 * out, so there may be no profile. limits (series, profiles and, with 32 more for labels that begin
 * with "__", series_labels) and profile_limits (json_bytes) may be NULL. Errors: ERR_INVALID (not
 * such a message; the error message states why), ERR_TOO_LARGE (limits).
 */
enum err_code
pyroscope_push_parse(struct arena *arena, struct span body, enum connect_encoding encoding,
                     const struct batch_limits *limits, const struct profile_limits *profile_limits,
                     const struct pyroscope_push **ret_push, struct err *err) MUST_USE;

#endif
