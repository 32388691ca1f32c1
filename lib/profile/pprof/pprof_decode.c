/*
 * Decodes in two passes. The first pass visits every top-level field once. It looks into samples
 * and locations to count their entries, skips the other messages, reads the single numbers, and
 * finds the range of bytes in which each kind of field occurs. Its counts give the exact size of
 * every array, so a file over a limit is refused before memory is allocated for it.
 *
 * The second pass allocates and fills the tables, then the samples, then the comments. Samples come
 * after the tables because they refer to locations by ids, and a file may contain its messages in
 * any order. The single numbers are stored at the end. Counting takes about a sixth of the time,
 * because packed numbers are counted eight bytes at a time (tests/bench/bench_pprof.c).
 */
#include "lib/profile/pprof/pprof.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/pprof/pprof_decoder.h"

#include <sys/random.h>

bool pprof_sniff(struct span bytes)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    bool has_known = false;
    while (at && at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at || field.id == 0)
            return false;
        if (field.id >= PROFILE_FIELD_COUNT)
            continue;
        bool is_bytes = field.id <= PROFILE_STRING || field.id == PROFILE_PERIOD_TYPE;
        bool may_be_packed = field.id == PROFILE_COMMENT; /* packed in bytes, or one number */
        if (!may_be_packed && (field.type == PROTOBUF_BYTES) != is_bytes)
            return false;
        has_known = true;
    }
    return has_known;
}

bool pprof_detect(struct span bytes)
{
    /* Field 1, length-delimited: sample_type. */
    enum { FIRST_TAG = 1 << 3 | PROTOBUF_BYTES };
    return (bytes.size && bytes.data[0] == FIRST_TAG) || pprof_sniff(bytes);
}

/* ---- comments and single fields ---- */

static enum err_code fill_comments(struct decoder *decoder)
{
    uint32_t *comments =
        arena_new(decoder->arena, uint32_t, (size_t)decoder->counts.messages[PROFILE_COMMENT]);
    struct profile *profile = decoder->profile;
    struct range range = decoder->ranges[PROFILE_COMMENT];
    struct protobuf_field field;
    profile->comments = comments;
    while (pprof_next_field(&range, PROFILE_COMMENT, &field)) {
        struct span bytes = field.bytes;
        const uint8_t *at = bytes.data, *end = bytes.size ? at + bytes.size : at;
        bool is_single = field.type != PROTOBUF_BYTES;
        while (is_single || at < end) {
            uint64_t number = field.number;
            if (!is_single)
                at = protobuf_read_varint(at, end, &number);
            if (!is_single && !at)
                return pprof_malformed(decoder, "comment", profile->comment_count);
            is_single = false;
            enum err_code code = pprof_set_string(decoder, "comment", (int64_t)number,
                                                  &comments[profile->comment_count++]);
            if (code)
                return code;
        }
    }
    return ERR_NONE;
}

static enum err_code fill_scalars(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    const int64_t *scalars = decoder->scalars;
    profile->time_ns = scalars[PROFILE_TIME_NANOS];
    profile->duration_ns = scalars[PROFILE_DURATION_NANOS];
    profile->period = scalars[PROFILE_PERIOD];
    enum err_code code =
        pprof_set_string(decoder, "profile", scalars[PROFILE_DROP_FRAMES], &profile->drop_frames);
    if (code)
        return code;
    code =
        pprof_set_string(decoder, "profile", scalars[PROFILE_KEEP_FRAMES], &profile->keep_frames);
    if (code)
        return code;
    code = pprof_set_string(decoder, "profile", scalars[PROFILE_DEFAULT_SAMPLE_TYPE],
                            &profile->default_sample_type);
    if (code)
        return code;
    return pprof_set_string(decoder, "profile", scalars[PROFILE_DOC_URL], &profile->doc_url);
}

static enum err_code decode_all(struct decoder *decoder)
{
    enum err_code (*const steps[])(struct decoder *) = {
        pprof_count, pprof_fill_tables, pprof_fill_samples, fill_comments, fill_scalars};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        enum err_code code = steps[i](decoder);
        if (code)
            return code;
    }
    return ERR_NONE;
}

enum err_code pprof_decode(struct span raw, const struct profile_limits *limits,
                           struct profile **ret_profile, struct err *err)
{
    arena_auto scratch = arena_create();
    struct decoder decoder = {
        .raw = raw, .limits = profile_limits_resolve(limits), .scratch = scratch, .err = err};
    if (raw.size == 0)
        return err_set(err, ERR_INVALID, "the pprof profile is empty");
    if (raw.size > decoder.limits.raw_bytes)
        return err_set(err, ERR_TOO_LARGE, "the profile is %zu bytes when expanded, limit %zu",
                       raw.size, decoder.limits.raw_bytes);
    if (getrandom(&decoder.seed, sizeof(decoder.seed), 0) != (ssize_t)sizeof(decoder.seed))
        return err_set_errno(err, ERR_INTERNAL, "random bytes for hashing");
    struct arena *arena = arena_create();
    decoder.arena = arena;
    decoder.profile = arena_new(arena, struct profile, 1);
    decoder.profile->arena = arena;
    enum err_code code = decode_all(&decoder);
    if (code)
        arena_destroy(arena);
    else
        *ret_profile = decoder.profile;
    return code;
}
