#include "lib/profile/format.h"

#include "lib/base/compress.h"
#include "lib/profile/cpuprofile.h"
#include "lib/profile/folded.h"
#include "lib/profile/foreign_text.h"
#include "lib/profile/json_scan.h"
#include "lib/profile/perf_script.h"
#include "lib/profile/pprof.h"
#include "lib/profile/profile.h"
#include "lib/profile/speedscope.h"
#include "lib/profile/text_input.h"

/* Field 1, length-delimited: sample_type, with which every writer begins. */
enum { PPROF_FIRST_TAG = 0x0a };

#define UNDERSTOOD                                                                                 \
    "understood are pprof (raw, gzip or zstd), folded stacks, perf script text, Chrome "           \
    ".cpuprofile and speedscope JSON"

static const struct {
    const char *name;
    const char *content_type;
    const char *extension;
    enum err_code (*decode)(struct span bytes, const struct profile_limits *limits,
                            struct profile **ret_profile, struct err *err);
} formats[FORMAT_COUNT] = {
    [FORMAT_PPROF] = {"pprof", "application/vnd.google.protobuf", ".pb", pprof_decode},
    [FORMAT_FOLDED] = {"folded", "text/plain; charset=utf-8", ".folded", folded_decode},
    [FORMAT_PERF_SCRIPT] = {"perf-script", "text/plain; charset=utf-8", ".perf.txt",
                            perf_script_decode},
    [FORMAT_CPUPROFILE] = {"cpuprofile", "application/json", ".cpuprofile", cpuprofile_decode},
    [FORMAT_SPEEDSCOPE] = {"speedscope", "application/json", ".speedscope.json", speedscope_decode},
};

/* Files that people try first, and what to do instead. */
static const struct {
    const char *start;
    size_t size;
    const char *advice;
} strangers[] = {
    {"PERFILE2", 8, "this is perf.data; upload the output of `perf script`"},
    {"\x7f"
     "ELF",
     4, "this is a program or library, not a profile"},
    {"PK\x03\x04", 4, "this is a zip archive; upload the profile in it"},
    {"FLR\0", 4, "this is a JFR recording; convert it to pprof or folded stacks"},
    {"\x89PNG", 4, "this is a picture"},
    {"<!", 2, "this is HTML, perhaps an error page that was saved"},
    {"<html", 5, "this is HTML, perhaps an error page that was saved"},
    {"<?xml", 5, "this is XML"},
    {"<svg", 4, "this is an SVG picture; upload the folded stacks that it was made from"},
};

static enum err_code find_stranger(struct span bytes, struct err *err)
{
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        if (bytes.size >= strangers[i].size &&
            memcmp(bytes.data, strangers[i].start, strangers[i].size) == 0)
            return err_set(err, ERR_UNSUPPORTED, "%s; " UNDERSTOOD, strangers[i].advice);
    }
    return ERR_NONE;
}

static enum err_code sniff_json(struct span text, enum format *ret_format, struct err *err)
{
    const char *advice = "this JSON is no profile that is known here";
    if (json_scan_has_member(text, "profiles") && json_scan_has_member(text, "shared")) {
        *ret_format = FORMAT_SPEEDSCOPE;
        return ERR_NONE;
    }
    bool is_heap = !json_scan_has_member(text, "startTime") && json_scan_has_member(text, "head") &&
                   !json_scan_has_member(text, "endTime");
    if (!is_heap && (json_scan_has_member(text, "nodes") || json_scan_has_member(text, "head"))) {
        *ret_format = FORMAT_CPUPROFILE;
        return ERR_NONE;
    }
    if (is_heap)
        advice = "this is a Chrome heap profile";
    else if (json_scan_has_member(text, "traceEvents"))
        advice = "this is a Chrome trace; save the CPU profile alone";
    else if (json_scan_has_member(text, "frames") && json_scan_has_member(text, "interval"))
        advice = "this is a stackprof dump; convert it to folded stacks";
    return err_set(err, ERR_UNSUPPORTED, "%s; " UNDERSTOOD, advice);
}

static bool starts_json_array(struct span text)
{
    text = span_trim(text);
    if (!span_starts_with(text, "["))
        return false;
    text = span_trim(span_of(text.data + 1, text.size - 1));
    return span_starts_with(text, "{");
}

/* text has no byte order mark and is no known stranger. */
static enum err_code sniff(struct span text, bool was_accepted, enum format *ret_format,
                           struct err *err)
{
    if (json_scan_is_object(text))
        return sniff_json(text, ret_format, err);
    if (text_input_is_binary(text)) {
        /* One that is cut short fails the sniffing, but its reader says best what is wrong. */
        *ret_format = FORMAT_PPROF;
        if (text.data[0] == PPROF_FIRST_TAG || pprof_sniff(text))
            return ERR_NONE;
        if (memchr(text.data, '\0', text.size))
            return err_set(err, ERR_UNSUPPORTED,
                           "this is no profile that is known here; " UNDERSTOOD);
    }
    if (starts_json_array(text))
        return err_set(err, ERR_UNSUPPORTED,
                       "this JSON is a list, perhaps a Chrome trace; " UNDERSTOOD);
    const char *advice = was_accepted ? NULL : foreign_text_find(text);
    if (advice)
        return err_set(err, ERR_UNSUPPORTED, "%s; " UNDERSTOOD, advice);
    *ret_format = perf_script_sniff(text) ? FORMAT_PERF_SCRIPT : FORMAT_FOLDED;
    return ERR_NONE;
}

static enum err_code decode_expanded(struct span bytes, const struct profile_limits *limits,
                                     enum format *ret_format, struct profile **ret_profile,
                                     struct err *err)
{
    size_t limit = profile_limits_resolve(limits).raw_bytes;
    buf_auto storage;
    buf_init(&storage, limit);
    struct span text;
    enum format format = FORMAT_PPROF;
    enum err_code code = find_stranger(bytes, err);
    if (!code)
        code = text_input_read(bytes, &storage, &text, err);
    if (!code)
        code = sniff(text, limits && limits->was_accepted, &format, err);
    if (!code)
        code = formats[format].decode(text, limits, ret_profile, err);
    /* Any text is tried as folded stacks in the end: the message names the other formats, too. */
    if (code == ERR_INVALID && format == FORMAT_FOLDED) {
        const struct err why = *err;
        return err_set(err, ERR_UNSUPPORTED,
                       "this text is no profile that is known here (%s); " UNDERSTOOD, why.message);
    }
    if (!code && ret_format)
        *ret_format = format;
    return code;
}

enum err_code format_decode(struct span bytes, const struct profile_limits *limits,
                            enum format *ret_format, struct profile **ret_profile, struct err *err)
{
    const struct profile_limits most = profile_limits_resolve(limits);
    const size_t limit = most.raw_bytes;
    enum compress_method method = compress_sniff(bytes);
    if (method == COMPRESS_NONE) {
        if (bytes.size == 0)
            return err_set(err, ERR_INVALID, "the profile is empty");
        if (bytes.size > limit)
            return err_set(err, ERR_TOO_LARGE, "%zu bytes; the limit is %zu", bytes.size, limit);
        return decode_expanded(bytes, limits, ret_format, ret_profile, err);
    }
    buf_auto expanded;
    buf_init(&expanded, limit);
    enum err_code code = compress_expand_ratio(method, bytes, most.expansion_ratio,
                                               most.expansion_setting, &expanded, err);
    if (code)
        return code;
    if (expanded.size == 0)
        return err_set(err, ERR_INVALID, "the profile is empty");
    return decode_expanded(buf_span(&expanded), limits, ret_format, ret_profile, err);
}

const char *format_name(enum format format)
{
    return (unsigned)format < FORMAT_COUNT ? formats[format].name : "unknown";
}

bool format_find(struct span name, enum format *ret_format)
{
    for (int format = 0; format < FORMAT_COUNT; format++) {
        if (span_equal_text(name, formats[format].name)) {
            *ret_format = (enum format)format;
            return true;
        }
    }
    return false;
}

const char *format_content_type(enum format format)
{
    return (unsigned)format < FORMAT_COUNT ? formats[format].content_type
                                           : "application/octet-stream";
}

const char *format_extension(enum format format)
{
    return (unsigned)format < FORMAT_COUNT ? formats[format].extension : "";
}
