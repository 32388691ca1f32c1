#include "lib/profile/batch_labels.h"

#include "lib/base/mem.h"

#include <stdlib.h>

enum { QUOTED_BYTES = 100, COMPARED_BYTES = 1024 };

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

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_name_byte(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           is_digit(byte);
}

bool batch_labels_is_name(struct span name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (!is_name_byte(name.data[i]))
            return false;
    }
    return name.size > 0 && !is_digit(name.data[0]) && !span_starts_with(name, "__");
}

size_t batch_labels_clean_name(struct span name, char *ret_name)
{
    size_t size = 0;
    if (name.size && is_digit(name.data[0]))
        ret_name[size++] = '_';
    for (size_t i = 0; i < name.size; i++) {
        ret_name[size++] = is_name_byte(name.data[i]) ? (char)name.data[i] : '_';
        if (size == 2 && ret_name[0] == '_' && ret_name[1] == '_')
            size = 1;
    }
    return size;
}

bool batch_labels_becomes(struct span sender_name, struct span name)
{
    if (span_equal(sender_name, name))
        return true;
    char clean[COMPARED_BYTES + 1];
    return sender_name.size <= COMPARED_BYTES && sender_name.size + 1 >= name.size &&
           span_equal(span_of(clean, batch_labels_clean_name(sender_name, clean)), name);
}

bool batch_labels_is_service(struct span name)
{
    const struct span service = SPAN_LITERAL("service_name");
    return name.size == service.size && batch_labels_becomes(name, service);
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
    if (label->name.size == 0)
        return err_set(err, ERR_INVALID, "a label has no name");
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

static void clean(struct arena *arena, struct batch_text_label *label)
{
    if (batch_labels_is_name(label->name))
        return;
    char *name = arena_alloc_raw(arena, label->name.size + 1, 1);
    label->name = span_of(name, batch_labels_clean_name(label->name, name));
}

/* Of those with one clean name the first, as they stood in order of the sender's names. */
static size_t keep_first(struct batch_text_label *labels, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < kept && !span_equal(labels[at].name, labels[i].name))
            at++;
        if (at == kept)
            labels[kept++] = labels[i];
    }
    return kept;
}

enum err_code batch_labels_check(struct arena *arena, struct batch_text_label *labels,
                                 size_t *count, const struct batch_limits *limits, struct err *err)
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
    for (size_t i = 0; i < kept; i++)
        clean(arena, &labels[i]);
    kept = keep_first(labels, kept);
    if (kept)
        qsort(labels, kept, sizeof(*labels), compare_labels);
    *count = kept;
    return ERR_NONE;
}
