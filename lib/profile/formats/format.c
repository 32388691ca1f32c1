#include "lib/profile/formats/format.h"

#include "lib/base/buf.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
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

#define SUPPORTED "supported formats: " FORMAT_LIST_TEXT

enum content { CONTENT_JSON, CONTENT_BINARY, CONTENT_TEXT };

static const struct {
    const char *name;
    const char *extension;
    const char *media_type;
    enum content content;
    bool (*detect)(struct span bytes);
    enum err_code (*decode)(struct span bytes, const struct profile_limits *limits,
                            struct profile **ret_profile, struct err *err);
} formats[FORMAT_COUNT] = {
#define FORMAT_ROW(id, name, title, extension, media_type, content, module)                        \
    {name, extension, media_type, CONTENT_##content, module##_detect, module##_decode},
    FORMAT_LIST(FORMAT_ROW)
#undef FORMAT_ROW
};

static enum err_code refuse_format(const char *advice, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "%s; " SUPPORTED, advice);
}

/* From the last row to the first: the first ones are the least specific (format_list.h). */
static bool find_by_content(enum content content, struct span text, enum format *ret_format)
{
    for (int format = FORMAT_COUNT - 1; format >= 0; format--) {
        if (formats[format].content == content && formats[format].detect(text)) {
            *ret_format = (enum format)format;
            return true;
        }
    }
    return false;
}

static enum err_code detect_json(struct span text, enum format *ret_format, struct err *err)
{
    if (find_by_content(CONTENT_JSON, text, ret_format))
        return ERR_NONE;
    const char *advice = foreign_file_find_json(text);
    return refuse_format(advice ? advice : "this JSON is not a supported profile", err);
}

static bool starts_json_array(struct span text)
{
    text = span_trim(text);
    if (!span_starts_with(text, "["))
        return false;
    text = span_trim(span_of(text.data + 1, text.size - 1));
    return span_starts_with(text, "{");
}

static enum err_code detect_text(struct span text, bool was_accepted, enum format *ret_format,
                                 struct err *err)
{
    if (starts_json_array(text))
        return refuse_format(
            "this JSON is a list, perhaps a Chrome trace; save the CPU profile alone, in Node with "
            "`node --cpu-prof`, with py-spy by `--format speedscope`",
            err);
    const char *advice = was_accepted ? NULL : foreign_text_find(text);
    if (!advice && find_by_content(CONTENT_TEXT, text, ret_format))
        return ERR_NONE;
    return refuse_format(advice ? advice : "this text is not a supported profile", err);
}

/* Finds the format of text, which has no byte order mark and is not a file that foreign_file_find
 * recognizes. Bytes with control characters that no binary format detects may still be text, unless
 * they contain a NUL. */
static enum err_code detect(struct span text, bool was_accepted, enum format *ret_format,
                            struct err *err)
{
    if (json_scan_is_object(text))
        return detect_json(text, ret_format, err);
    if (!text_input_is_binary(text))
        return detect_text(text, was_accepted, ret_format, err);
    if (find_by_content(CONTENT_BINARY, text, ret_format)) {
        const char *advice = foreign_file_find_protobuf(text);
        return advice ? refuse_format(advice, err) : ERR_NONE;
    }
    if (memchr(text.data, '\0', text.size))
        return refuse_format("this is not a supported profile", err);
    return detect_text(text, was_accepted, ret_format, err);
}

static enum err_code decode_expanded(struct span bytes, const struct profile_limits *limits,
                                     enum format *ret_format, struct profile **ret_profile,
                                     struct err *err)
{
    buf_auto storage;
    buf_init(&storage, profile_limits_resolve(limits).raw_bytes);
    struct span text;
    enum format format;
    const char *advice = foreign_file_find(bytes);
    if (advice)
        return refuse_format(advice, err);
    enum err_code code = text_input_read(bytes, &storage, &text, err);
    if (code)
        return code;
    code = detect(text, limits && limits->was_accepted, &format, err);
    if (code)
        return code;
    code = formats[format].decode(text, limits, ret_profile, err);
    /* Any text is tried as folded stacks in the end, so the message lists the other formats too. */
    if (code == ERR_INVALID && format == FORMAT_FOLDED) {
        const struct err why = *err;
        return err_set(err, ERR_UNSUPPORTED,
                       "this text is not a supported profile (%s); " SUPPORTED, why.message);
    }
    if (code)
        return code;
    if (ret_format)
        *ret_format = format;
    return ERR_NONE;
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
            return err_set(err, ERR_TOO_LARGE, "the profile has %zu bytes; the limit is %zu",
                           bytes.size, limit);
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

const char *format_media_type(enum format format)
{
    return (unsigned)format < FORMAT_COUNT ? formats[format].media_type
                                           : "application/octet-stream";
}

const char *format_extension(enum format format)
{
    return (unsigned)format < FORMAT_COUNT ? formats[format].extension : "";
}
