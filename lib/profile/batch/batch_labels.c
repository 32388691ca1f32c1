#include "lib/profile/batch/batch_labels.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

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

bool batch_labels_becomes(struct span sent_name, struct span name)
{
    if (span_equal(sent_name, name))
        return true;
    char clean[COMPARED_BYTES + 1];
    return sent_name.size <= COMPARED_BYTES && sent_name.size + 1 >= name.size &&
           span_equal(span_of(clean, batch_labels_clean_name(sent_name, clean)), name);
}

int batch_labels_compare(struct span a, struct span b)
{
    const int is_first = span_equal_text(b, "service.name") - span_equal_text(a, "service.name");
    return is_first ? is_first : span_compare(a, b);
}

bool batch_labels_is_service(struct span name)
{
    const struct span service = SPAN_LITERAL("service_name");
    return name.size == service.size && batch_labels_becomes(name, service);
}

/* The size of a name in a message, without cutting a character. */
static int quoted_size(struct span name)
{
    size_t size = name.size > QUOTED_BYTES ? QUOTED_BYTES : name.size;
    while (size && size < name.size && (name.data[size] & 0xc0) == 0x80)
        size--;
    return (int)size;
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
    if (!span_is_utf8(label->name))
        return err_set(err, ERR_INVALID, "the name of label '%.*s' is no UTF-8", size, name);
    if (label->value.size > limits->value_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "the value of label '%.*s' is %zu bytes; the limit is %u", size, name,
                       label->value.size, limits->value_bytes);
    if (!span_is_utf8(label->value))
        return err_set(err, ERR_INVALID, "the value of label '%.*s' is no UTF-8", size, name);
    return ERR_NONE;
}

const char *batch_labels_lost_notice(struct arena *arena, struct span lost, struct span kept)
{
    return arena_printf(
        arena, "label '%.*s' is left out: its name becomes that of '%.*s', which counts",
        quoted_size(lost), (const char *)lost.data, quoted_size(kept), (const char *)kept.data);
}

/* A label with its normalized name. */
struct named {
    struct batch_text_label label;
    struct span clean;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    const int order = span_compare(x->clean, y->clean);
    return order ? order : batch_labels_compare(x->label.name, y->label.name);
}

static struct span clean(struct arena *arena, struct span name)
{
    if (batch_labels_is_name(name))
        return name;
    char *cleaned = arena_alloc_raw(arena, name.size + 1, 1);
    return span_of(cleaned, batch_labels_clean_name(name, cleaned));
}

static enum err_code refuse_twice(struct span name, struct err *err)
{
    return err_set(err, ERR_INVALID, "label '%.*s' is given twice", quoted_size(name),
                   (const char *)name.data);
}

/* Keeps the first label of each normalized name; named is sorted. */
static enum err_code keep_first(struct arena *arena, const struct named *named, size_t count,
                                struct batch_text_label *labels, size_t *ret_kept,
                                const char **notice, struct err *err)
{
    const struct named *last = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct batch_text_label *label = &named[i].label;
        if (i > 0 && span_equal(label->name, named[i - 1].label.name))
            return refuse_twice(label->name, err);
        if (!last || !span_equal(last->clean, named[i].clean)) {
            last = &named[i];
            labels[kept++] =
                (struct batch_text_label){.name = named[i].clean, .value = label->value};
        } else if (!*notice && !span_equal(last->label.value, label->value)) {
            *notice = batch_labels_lost_notice(arena, label->name, last->label.name);
        }
    }
    *ret_kept = kept;
    return ERR_NONE;
}

enum err_code batch_labels_check(struct arena *arena, struct batch_text_label *labels,
                                 size_t *count, const struct batch_limits *limits,
                                 const char **notice, struct err *err)
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
    struct named *named = arena_new_raw(arena, struct named, kept);
    for (size_t i = 0; i < kept; i++)
        named[i] = (struct named){.label = labels[i], .clean = clean(arena, labels[i].name)};
    if (kept)
        qsort(named, kept, sizeof(*named), compare_named);
    return keep_first(arena, named, kept, labels, count, notice, err);
}
