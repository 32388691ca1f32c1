/* Reads attributes: values of any kind, lists of numbers, and the dictionary's table of
 * attributes. */
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/otlp/otlp_decoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- lists ---- */

static void join(struct span *list, struct buf *joined, struct span bytes)
{
    if (!list->size || list->data != joined->data) {
        buf_clear(joined);
        buf_append_span(joined, *list);
    }
    buf_append_span(joined, bytes);
    *list = buf_span(joined);
}

bool otlp_list_add(struct span *list, struct buf *joined, const struct protobuf_field *field,
                   enum protobuf_type type)
{
    if (field->type == PROTOBUF_BYTES) {
        if (list->size)
            join(list, joined, field->bytes);
        else
            *list = field->bytes;
        return true;
    }
    if (field->type != type)
        return false;
    /* The bytes as in a packed list. */
    const bool is_varint = type == PROTOBUF_VARINT;
    uint8_t bytes[PROTOBUF_VARINT_BYTES_MAX];
    size_t size = 0;
    uint64_t rest = field->number;
    for (; is_varint ? rest >= 0x80 : size < 7; rest >>= is_varint ? 7 : 8)
        bytes[size++] = (uint8_t)(is_varint ? rest | 0x80 : rest);
    bytes[size++] = (uint8_t)rest;
    join(list, joined, span_of(bytes, size));
    return true;
}

/* ---- values ---- */

static void set_number(struct otlp_decoder *decoder, struct otlp_attribute *attribute,
                       int64_t number)
{
    char text[32];
    int size = snprintf(text, sizeof(text), "%" PRId64, number);
    attribute->kind = OTLP_NUMBER;
    attribute->number = number;
    attribute->text = otlp_intern(decoder, span_of(text, (size_t)size));
}

/* Formats a number with 15 significant digits if they parse to the same number, else with 17. */
static void set_double(struct otlp_decoder *decoder, struct otlp_attribute *attribute,
                       uint64_t bits)
{
    double number;
    char text[40];
    memcpy(&number, &bits, sizeof(number));
    int size = snprintf(text, sizeof(text), "%.15g", number);
    double again = strtod(text, NULL);
    if (memcmp(&again, &number, sizeof(number)) != 0)
        size = snprintf(text, sizeof(text), "%.17g", number);
    attribute->kind = OTLP_TEXT;
    attribute->is_double = true;
    attribute->text = otlp_intern(decoder, span_of(text, (size_t)size));
}

static void set_text(struct otlp_decoder *decoder, struct otlp_attribute *attribute,
                     struct span text)
{
    attribute->kind = OTLP_TEXT;
    attribute->is_double = false;
    attribute->text = otlp_intern(decoder, text);
}

static enum protobuf_type type_of_value(uint32_t id)
{
    if (id == ANY_DOUBLE)
        return PROTOBUF_FIXED64;
    return id == ANY_BOOL || id == ANY_INT || id == ANY_STRING_STRINDEX ? PROTOBUF_VARINT
                                                                        : PROTOBUF_BYTES;
}

static bool set_value(struct otlp_decoder *decoder, struct otlp_attribute *attribute,
                      const struct protobuf_field *field)
{
    switch (field->id) {
    case ANY_STRING:
        set_text(decoder, attribute, field->bytes);
        return true;
    case ANY_BOOL:
        set_text(decoder, attribute, span_text(field->number ? "true" : "false"));
        return true;
    case ANY_INT:
        set_number(decoder, attribute, (int64_t)field->number);
        return true;
    case ANY_DOUBLE:
        set_double(decoder, attribute, field->number);
        return true;
    case ANY_STRING_STRINDEX:
        /* If there is a text too, the text is used. */
        if (attribute->kind == OTLP_TEXT && attribute->text != 0)
            return true;
        attribute->kind = OTLP_TEXT;
        return otlp_find_string(decoder, field->number, &attribute->text);
    default:
        attribute->kind = OTLP_LIST;
        return true;
    }
}

bool otlp_read_value(struct otlp_decoder *decoder, struct span bytes,
                     struct otlp_attribute *attribute)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == 0 || field.id > ANY_STRING_STRINDEX)
            continue;
        if (field.type != type_of_value(field.id) || !set_value(decoder, attribute, &field) ||
            !otlp_charge(decoder, 0))
            return false;
    }
    return true;
}

/* ---- the table ---- */

enum otlp_role otlp_role_of(const struct otlp_decoder *decoder, struct span key)
{
    static const struct {
        const char *key;
        enum otlp_role role;
    } known[] = {{"service.name", ROLE_SERVICE},
                 {"process.executable.name", ROLE_EXECUTABLE},
                 {"process.executable.build_id.gnu", ROLE_BUILD_ID_GNU},
                 {"process.executable.build_id.go", ROLE_BUILD_ID_GO},
                 {"process.executable.build_id.htlhash", ROLE_BUILD_ID_HTLHASH}};
    const struct otlp_options *options = decoder->options;
    for (size_t i = 0; i < options->series_attribute_count; i++)
        if (batch_labels_becomes(key, options->series_attributes[i]))
            return span_equal_text(key, "service.name") ? ROLE_SERVICE : ROLE_SERIES;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_equal_text(key, known[i].key))
            return known[i].role;
    return ROLE_PLAIN;
}

static bool fill_attribute(struct otlp_decoder *decoder, struct span bytes,
                           struct otlp_attribute *attribute)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == 0 || field.id > ATTRIBUTE_UNIT)
            continue;
        bool is_value = field.id == ATTRIBUTE_VALUE;
        if (field.type != (is_value ? PROTOBUF_BYTES : PROTOBUF_VARINT))
            return false;
        bool is_good = is_value ? otlp_read_value(decoder, field.bytes, attribute)
                                : otlp_find_string(decoder, field.number,
                                                   field.id == ATTRIBUTE_KEY ? &attribute->key
                                                                             : &attribute->unit);
        if (!is_good)
            return false;
    }
    return true;
}

void otlp_fill_attributes(struct otlp_decoder *decoder)
{
    const size_t count = (size_t)decoder->counts.tables[TABLE_ATTRIBUTE];
    struct otlp_range range = decoder->ranges[TABLE_ATTRIBUTE];
    struct otlp_attribute *attributes = arena_new(decoder->scratch, struct otlp_attribute, count);
    uint8_t *wrong = arena_new(decoder->scratch, uint8_t, count);
    uint32_t last_key = 0;
    enum otlp_role last_role = ROLE_PLAIN;
    bool is_last_text = true;
    struct span bytes;
    for (size_t i = 0; otlp_charge(decoder, 0) && otlp_next_entry(&range, TABLE_ATTRIBUTE, &bytes);
         i++) {
        wrong[i] = !fill_attribute(decoder, bytes, &attributes[i]);
        if (attributes[i].key != last_key) {
            const struct span key = decoder->strings[attributes[i].key];
            last_role = otlp_role_of(decoder, key);
            is_last_text = span_is_utf8(key);
        }
        last_key = attributes[i].key;
        attributes[i].role = last_role;
        wrong[i] |= !is_last_text;
    }
    decoder->attributes = attributes;
    decoder->wrong[TABLE_ATTRIBUTE] = wrong;
}
