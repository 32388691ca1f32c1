#include "lib/profile/formats/format.h"

#include "lib/base/compress.h"
#include "lib/profile/formats/cpuprofile.h"
#include "lib/profile/formats/folded.h"
#include "lib/profile/formats/foreign_file.h"
#include "lib/profile/formats/foreign_text.h"
#include "lib/profile/formats/json_scan.h"
#include "lib/profile/formats/perf_script.h"
#include "lib/profile/formats/speedscope.h"
#include "lib/profile/formats/text_input.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/profile.h"

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

static enum err_code refuse(const char *advice, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "%s; " UNDERSTOOD, advice);
}

/* V8's heap profiles and snapshots have members of a CPU profile, but no times. */
static bool is_cpuprofile(struct span text)
{
    enum { NODES, HEAD, START_TIME, END_TIME, SNAPSHOT, COUNT };
    static const char *const names[COUNT] = {"nodes", "head", "startTime", "endTime", "snapshot"};
    const uint64_t found = json_scan_find_members(text, names, COUNT);
    if (found & (1 << START_TIME | 1 << END_TIME))
        return found & (1 << NODES | 1 << HEAD);
    return (found & (1 << NODES | 1 << HEAD | 1 << SNAPSHOT)) == 1 << NODES;
}

static enum err_code sniff_json(struct span text, enum format *ret_format, struct err *err)
{
    if (json_scan_has_member(text, "profiles") && json_scan_has_member(text, "shared")) {
        *ret_format = FORMAT_SPEEDSCOPE;
        return ERR_NONE;
    }
    if (is_cpuprofile(text)) {
        *ret_format = FORMAT_CPUPROFILE;
        return ERR_NONE;
    }
    const char *advice = foreign_file_find_json(text);
    return refuse(advice ? advice : "this JSON is no profile that is known here", err);
}

static bool starts_json_array(struct span text)
{
    text = span_trim(text);
    if (!span_starts_with(text, "["))
        return false;
    text = span_trim(span_of(text.data + 1, text.size - 1));
    return span_starts_with(text, "{");
}

static enum err_code sniff_protobuf(struct span bytes, enum format *ret_format, struct err *err)
{
    const char *advice = foreign_file_find_protobuf(bytes);
    *ret_format = FORMAT_PPROF;
    return advice ? refuse(advice, err) : ERR_NONE;
}

/* text has no byte order mark and is no file that foreign_file finds by its first bytes. */
static enum err_code sniff(struct span text, bool was_accepted, enum format *ret_format,
                           struct err *err)
{
    if (json_scan_is_object(text))
        return sniff_json(text, ret_format, err);
    if (text_input_is_binary(text)) {
        /* One that is cut short fails the sniffing, but its reader says best what is wrong. */
        if (text.data[0] == PPROF_FIRST_TAG || pprof_sniff(text))
            return sniff_protobuf(text, ret_format, err);
        if (memchr(text.data, '\0', text.size))
            return refuse("this is no profile that is known here", err);
    }
    if (starts_json_array(text))
        return refuse(
            "this JSON is a list, perhaps a Chrome trace; save the CPU profile alone, in Node with "
            "`node --cpu-prof`, with py-spy by `--format speedscope`",
            err);
    const char *advice = was_accepted ? NULL : foreign_text_find(text);
    if (advice)
        return refuse(advice, err);
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
    const char *advice = foreign_file_find(bytes);
    enum err_code code = advice ? refuse(advice, err) : ERR_NONE;
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
