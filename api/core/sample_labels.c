#include "api/core/sample_labels.h"

#include "lib/base/err.h"
#include "lib/profile/batch/batch_labels.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 128 };

/* Labels of threads and spans, in the names that runtimes, profilers and OpenTelemetry use; clean
 * names. */
static const char *const never[] = {
    "thread",       "thread_id", "thread_name", "tid",       "lwp",      "goroutine",
    "goroutine_id", "span",      "span_id",     "span_name", "trace_id", "profile_id",
};

static enum err_code check_name(struct span name, struct span clean, struct err *err)
{
    const int size = name.size < 100 ? (int)name.size : 100;
    if (!batch_labels_is_name(clean))
        return err_set(err, ERR_INVALID, "'%.*s' is not a label name", size,
                       (const char *)name.data);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (span_equal_text(clean, never[i]))
            return err_set(
                err, ERR_INVALID,
                "'%.*s' cannot make series, since labels of threads and spans have an unlimited "
                "number of values; samples keep it, and queries can group and filter by it",
                size, (const char *)name.data);
    }
    return ERR_NONE;
}

static bool has_name(const struct span *names, uint32_t count, struct span name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (span_equal(names[i], name))
            return true;
    }
    return false;
}

static enum err_code add_name(struct span name, char list[SAMPLE_LABELS_BYTES], struct err *err)
{
    char clean[NAME_MAX_BYTES + 1];
    struct span names[SAMPLE_LABELS_MAX];
    if (name.size > NAME_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE, "a name has %zu bytes; at most %d", name.size,
                       NAME_MAX_BYTES);
    const struct span cleaned = span_of(clean, batch_labels_clean_name(name, clean));
    enum err_code code = check_name(name, cleaned, err);
    const uint32_t count = sample_labels_split(list, names);
    if (code || has_name(names, count, cleaned))
        return code;
    const size_t size = strlen(list);
    if (count == SAMPLE_LABELS_MAX || size + cleaned.size + 2 > SAMPLE_LABELS_BYTES)
        return err_set(err, ERR_TOO_LARGE, "more than %d names, or %d bytes", SAMPLE_LABELS_MAX,
                       SAMPLE_LABELS_BYTES - 1);
    snprintf(list + size, SAMPLE_LABELS_BYTES - size, "%s%.*s", size ? "," : "", (int)cleaned.size,
             (const char *)cleaned.data);
    return ERR_NONE;
}

enum err_code sample_labels_read(const char *text, char ret_list[SAMPLE_LABELS_BYTES],
                                 struct err *err)
{
    char list[SAMPLE_LABELS_BYTES] = "";
    struct span rest = span_text(text), name;
    while (rest.size) {
        span_split(rest, ',', &name, &rest);
        name = span_trim(name);
        enum err_code code = name.size ? add_name(name, list, err) : ERR_NONE;
        if (code)
            return code;
    }
    memcpy(ret_list, list, sizeof(list));
    return ERR_NONE;
}

uint32_t sample_labels_split(const char *list, struct span ret_names[SAMPLE_LABELS_MAX])
{
    uint32_t count = 0;
    while (*list && count < SAMPLE_LABELS_MAX) {
        const size_t size = strcspn(list, ",");
        ret_names[count++] = span_of(list, size);
        list += size + (list[size] == ',');
    }
    return count;
}
