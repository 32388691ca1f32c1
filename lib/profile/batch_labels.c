#include "lib/profile/batch_labels.h"

#include <stdlib.h>

enum { QUOTED_BYTES = 100 };

struct batch_limits batch_limits_resolve(const struct batch_limits *limits)
{
    struct batch_limits resolved = limits ? *limits : (struct batch_limits){0};
    if (resolved.series_labels == 0)
        resolved.series_labels = 64;
    if (resolved.name_bytes == 0)
        resolved.name_bytes = 1024;
    if (resolved.value_bytes == 0)
        resolved.value_bytes = 2048;
    if (resolved.types == 0)
        resolved.types = 64;
    if (resolved.series == 0)
        resolved.series = 10000;
    if (resolved.profiles == 0)
        resolved.profiles = 10000;
    return resolved;
}

static bool is_name_byte(uint8_t byte, bool is_first)
{
    bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
    return is_letter || (!is_first && ((byte >= '0' && byte <= '9') || byte == '.'));
}

bool batch_labels_is_name(struct span name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (!is_name_byte(name.data[i], i == 0))
            return false;
    }
    return name.size > 0;
}

static int quoted_size(struct span name)
{
    return name.size > QUOTED_BYTES ? QUOTED_BYTES : (int)name.size;
}

static enum err_code check_label(const struct batch_text_label *label,
                                 const struct batch_limits *limits, struct err *err)
{
    int size = quoted_size(label->name);
    const char *name = (const char *)label->name.data;
    if (label->name.size > limits->name_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "the name of label '%.*s…' is %zu bytes; the limit is %u", size, name,
                       label->name.size, limits->name_bytes);
    if (!batch_labels_is_name(label->name))
        return err_set(err, ERR_INVALID,
                       "'%.*s' is no name of a label: a letter or _, then letters, digits, _ or .",
                       size, name);
    if (label->value.size > limits->value_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "the value of label '%.*s' is %zu bytes; the limit is %u", size, name,
                       label->value.size, limits->value_bytes);
    if (!span_is_utf8(label->value))
        return err_set(err, ERR_INVALID, "the value of label '%.*s' is no UTF-8", size, name);
    return ERR_NONE;
}

static int compare_labels(const void *a, const void *b)
{
    const struct batch_text_label *x = a, *y = b;
    return span_compare(x->name, y->name);
}

enum err_code batch_labels_check(struct batch_text_label *labels, size_t *count,
                                 const struct batch_limits *limits, struct err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (labels[i].value.size)
            labels[kept++] = labels[i];
    }
    if (kept > limits->series_labels)
        return err_set(err, ERR_TOO_LARGE, "%zu labels; the limit is %u", kept,
                       limits->series_labels);
    for (size_t i = 0; i < kept; i++) {
        enum err_code code = check_label(&labels[i], limits, err);
        if (code)
            return code;
    }
    if (kept)
        qsort(labels, kept, sizeof(*labels), compare_labels);
    for (size_t i = 1; i < kept; i++) {
        if (span_equal(labels[i - 1].name, labels[i].name))
            return err_set(err, ERR_INVALID, "label '%.*s' is given twice",
                           quoted_size(labels[i].name), (const char *)labels[i].name.data);
    }
    *count = kept;
    return ERR_NONE;
}
