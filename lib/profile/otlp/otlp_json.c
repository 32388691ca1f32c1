/*
 * Converts OTLP in JSON (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding") to the same
 * message in protobuf, so that one decoder handles both. Names are lowerCamelCase, or those of the
 * .proto files; 64-bit numbers are numbers or text; ids of traces and spans are hexadecimal. An
 * attribute value that is bytes, a list or a map is written as an empty field, because the decoder
 * ignores its contents.
 */
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/formats/json_tree.h"
#include "lib/profile/otlp/otlp_decoder.h"

#include <math.h>
#include <stdlib.h>

/* How a member is written. AS_MARK: as an empty length-delimited field. */
enum json_kind { AS_MESSAGE, AS_TEXT, AS_NUMBER, AS_FIXED64, AS_DOUBLE, AS_BOOL, AS_HEX, AS_MARK };

struct json_field {
    const char *name;       /* lowerCamelCase */
    const char *proto_name; /* as in the .proto files */
    uint32_t number;
    enum json_kind kind;
    bool is_repeated;
    const struct json_field *message; /* its fields; for AS_MESSAGE */
};

/* A list ends with a NULL name. */
static const struct json_field any_fields[] = {
    {"stringValue", "string_value", ANY_STRING, AS_TEXT, false, NULL},
    {"boolValue", "bool_value", ANY_BOOL, AS_BOOL, false, NULL},
    {"intValue", "int_value", ANY_INT, AS_NUMBER, false, NULL},
    {"doubleValue", "double_value", ANY_DOUBLE, AS_DOUBLE, false, NULL},
    {"arrayValue", "array_value", ANY_ARRAY, AS_MARK, false, NULL},
    {"kvlistValue", "kvlist_value", ANY_KVLIST, AS_MARK, false, NULL},
    {"bytesValue", "bytes_value", ANY_BYTES, AS_MARK, false, NULL},
    {"stringValueStrindex", "string_value_strindex", ANY_STRING_STRINDEX, AS_NUMBER, false, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field key_value_fields[] = {
    {"key", "key", KEY_VALUE_KEY, AS_TEXT, false, NULL},
    {"value", "value", KEY_VALUE_VALUE, AS_MESSAGE, false, any_fields},
    {"keyStrindex", "key_strindex", KEY_VALUE_KEY_STRINDEX, AS_NUMBER, false, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field resource_fields[] = {
    {"attributes", "attributes", RESOURCE_ATTRIBUTES, AS_MESSAGE, true, key_value_fields},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field scope_fields[] = {
    {"attributes", "attributes", SCOPE_ATTRIBUTES, AS_MESSAGE, true, key_value_fields},
    {NULL, NULL, 0, AS_MARK, false, NULL}};

/* Numbered as since 1.10. Earlier layouts have the same names, so their JSON is accepted, too; two
 * names that have changed, "sample" and "line", have rows of their own below. */
static const struct json_field sample_fields[] = {
    {"stackIndex", "stack_index", 1, AS_NUMBER, false, NULL},
    {"attributeIndices", "attribute_indices", 2, AS_NUMBER, true, NULL},
    {"linkIndex", "link_index", 3, AS_NUMBER, false, NULL},
    {"values", "values", 4, AS_NUMBER, true, NULL},
    {"timestampsUnixNano", "timestamps_unix_nano", 5, AS_FIXED64, true, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field value_type_fields[] = {
    {"typeStrindex", "type_strindex", VALUE_TYPE_TYPE, AS_NUMBER, false, NULL},
    {"unitStrindex", "unit_strindex", VALUE_TYPE_UNIT, AS_NUMBER, false, NULL},
    {"aggregationTemporality", "aggregation_temporality", VALUE_TYPE_TEMPORALITY, AS_NUMBER, false,
     NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field profile_fields[] = {
    {"sampleType", "sample_type", PROFILE_SAMPLE_TYPE, AS_MESSAGE, false, value_type_fields},
    {"samples", "samples", PROFILE_SAMPLES, AS_MESSAGE, true, sample_fields},
    {"sample", "sample", PROFILE_SAMPLES, AS_MESSAGE, true, sample_fields},
    {"timeUnixNano", "time_unix_nano", PROFILE_TIME, AS_FIXED64, false, NULL},
    {"durationNano", "duration_nano", PROFILE_DURATION, AS_NUMBER, false, NULL},
    {"periodType", "period_type", PROFILE_PERIOD_TYPE, AS_MESSAGE, false, value_type_fields},
    {"period", "period", PROFILE_PERIOD, AS_NUMBER, false, NULL},
    {"attributeIndices", "attribute_indices", PROFILE_ATTRIBUTES, AS_NUMBER, true, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field scope_profiles_fields[] = {
    {"scope", "scope", SCOPE_PROFILES_SCOPE, AS_MESSAGE, false, scope_fields},
    {"profiles", "profiles", SCOPE_PROFILES_PROFILES, AS_MESSAGE, true, profile_fields},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field resource_profiles_fields[] = {
    {"resource", "resource", RESOURCE_PROFILES_RESOURCE, AS_MESSAGE, false, resource_fields},
    {"scopeProfiles", "scope_profiles", RESOURCE_PROFILES_SCOPE_PROFILES, AS_MESSAGE, true,
     scope_profiles_fields},
    {NULL, NULL, 0, AS_MARK, false, NULL}};

static const struct json_field mapping_fields[] = {
    {"memoryStart", "memory_start", MAPPING_START, AS_NUMBER, false, NULL},
    {"memoryLimit", "memory_limit", MAPPING_LIMIT, AS_NUMBER, false, NULL},
    {"fileOffset", "file_offset", MAPPING_OFFSET, AS_NUMBER, false, NULL},
    {"filenameStrindex", "filename_strindex", MAPPING_FILENAME, AS_NUMBER, false, NULL},
    {"attributeIndices", "attribute_indices", MAPPING_ATTRIBUTES, AS_NUMBER, true, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field line_fields[] = {
    {"functionIndex", "function_index", LINE_FUNCTION, AS_NUMBER, false, NULL},
    {"line", "line", LINE_LINE, AS_NUMBER, false, NULL},
    {"column", "column", LINE_COLUMN, AS_NUMBER, false, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field location_fields[] = {
    {"mappingIndex", "mapping_index", LOCATION_MAPPING, AS_NUMBER, false, NULL},
    {"address", "address", LOCATION_ADDRESS, AS_NUMBER, false, NULL},
    {"lines", "lines", LOCATION_LINES, AS_MESSAGE, true, line_fields},
    {"line", "line", LOCATION_LINES, AS_MESSAGE, true, line_fields},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field function_fields[] = {
    {"nameStrindex", "name_strindex", FUNCTION_NAME, AS_NUMBER, false, NULL},
    {"systemNameStrindex", "system_name_strindex", FUNCTION_SYSTEM_NAME, AS_NUMBER, false, NULL},
    {"filenameStrindex", "filename_strindex", FUNCTION_FILENAME, AS_NUMBER, false, NULL},
    {"startLine", "start_line", FUNCTION_START_LINE, AS_NUMBER, false, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field link_fields[] = {
    {"traceId", "trace_id", LINK_TRACE_ID, AS_HEX, false, NULL},
    {"spanId", "span_id", LINK_SPAN_ID, AS_HEX, false, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field attribute_fields[] = {
    {"keyStrindex", "key_strindex", ATTRIBUTE_KEY, AS_NUMBER, false, NULL},
    {"value", "value", ATTRIBUTE_VALUE, AS_MESSAGE, false, any_fields},
    {"unitStrindex", "unit_strindex", ATTRIBUTE_UNIT, AS_NUMBER, false, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field stack_fields[] = {
    {"locationIndices", "location_indices", STACK_LOCATIONS, AS_NUMBER, true, NULL},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field dictionary_fields[] = {
    {"mappingTable", "mapping_table", TABLE_MAPPING, AS_MESSAGE, true, mapping_fields},
    {"locationTable", "location_table", TABLE_LOCATION, AS_MESSAGE, true, location_fields},
    {"functionTable", "function_table", TABLE_FUNCTION, AS_MESSAGE, true, function_fields},
    {"linkTable", "link_table", TABLE_LINK, AS_MESSAGE, true, link_fields},
    {"stringTable", "string_table", TABLE_STRING, AS_TEXT, true, NULL},
    {"attributeTable", "attribute_table", TABLE_ATTRIBUTE, AS_MESSAGE, true, attribute_fields},
    {"stackTable", "stack_table", TABLE_STACK, AS_MESSAGE, true, stack_fields},
    {NULL, NULL, 0, AS_MARK, false, NULL}};
static const struct json_field request_fields[] = {
    {"resourceProfiles", "resource_profiles", REQUEST_RESOURCE_PROFILES, AS_MESSAGE, true,
     resource_profiles_fields},
    {"dictionary", "dictionary", REQUEST_DICTIONARY, AS_MESSAGE, false, dictionary_fields},
    {NULL, NULL, 0, AS_MARK, false, NULL}};

/* ---- writing ---- */

enum { SIZE_BYTES = 5 };

static void write_varint(struct buf *raw, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(raw, (uint8_t)(number | 0x80));
    buf_append_byte(raw, (uint8_t)number);
}

static void write_tag(struct buf *raw, const struct json_field *field, enum protobuf_type type)
{
    write_varint(raw, (uint64_t)field->number << 3 | type);
}

/* Begins a message whose size, always five bytes, is filled in later. Returns where the content
 * begins. */
static size_t begin_bytes(struct buf *raw, const struct json_field *field)
{
    static const uint8_t unknown_size[SIZE_BYTES] = {0};
    write_tag(raw, field, PROTOBUF_BYTES);
    buf_append(raw, unknown_size, sizeof(unknown_size));
    return raw->size;
}

static void end_bytes(struct buf *raw, size_t start)
{
    if (buf_failed(raw))
        return;
    uint64_t size = raw->size - start;
    for (size_t i = 0; i < SIZE_BYTES; i++, size >>= 7)
        raw->data[start - SIZE_BYTES + i] =
            (uint8_t)((size & 0x7f) | (i + 1 < SIZE_BYTES ? 0x80 : 0));
}

/* ---- values ---- */

static enum err_code wrong(const struct json_field *field, const char *expected, struct err *err)
{
    return err_set(err, ERR_INVALID, "OTLP in JSON: \"%s\" is not %s", field->name, expected);
}

/* Whole numbers are numbers or texts; those of 64 bits may be unsigned. */
static bool read_number(const json_t *value, uint64_t *ret_number)
{
    int64_t number;
    if (json_is_integer(value)) {
        *ret_number = (uint64_t)json_integer_value(value);
        return true;
    }
    if (json_is_real(value)) {
        const double real = json_real_value(value);
        if (!(real >= -0x1p63 && real < 0x1p63) || real != floor(real))
            return false;
        *ret_number = (uint64_t)(int64_t)real;
        return true;
    }
    if (!json_is_string(value))
        return false;
    const struct span text = span_of(json_string_value(value), json_string_length(value));
    if (span_parse_u64(text, ret_number))
        return true;
    if (!span_parse_i64(text, &number))
        return false;
    *ret_number = (uint64_t)number;
    return true;
}

static bool read_double(const json_t *value, double *ret_number)
{
    if (!json_is_string(value)) {
        *ret_number = json_number_value(value);
        return json_is_number(value);
    }
    const char *text = json_string_value(value);
    char *end;
    *ret_number = strtod(text, &end);
    return end != text && *end == 0;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit = (char)(digit | 0x20);
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool write_hex(const json_t *value, struct buf *raw)
{
    const size_t size = json_string_length(value);
    const char *text = json_string_value(value);
    if (!text || size % 2)
        return false;
    for (size_t i = 0; i < size; i += 2) {
        const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0)
            return false;
        buf_append_byte(raw, (uint8_t)(high << 4 | low));
    }
    return true;
}

/* Writes the number without its field, as in a packed list. */
static enum err_code write_number(const struct json_field *field, const json_t *value,
                                  struct buf *raw, struct err *err)
{
    uint64_t number;
    if (!read_number(value, &number))
        return wrong(field, "a whole number", err);
    if (field->kind == AS_FIXED64)
        buf_append_u64(raw, number);
    else
        write_varint(raw, number);
    return ERR_NONE;
}

static enum err_code write_simple(const struct json_field *field, const json_t *value,
                                  struct buf *raw, struct err *err)
{
    double real;
    switch (field->kind) {
    case AS_NUMBER:
    case AS_FIXED64:
        write_tag(raw, field, field->kind == AS_FIXED64 ? PROTOBUF_FIXED64 : PROTOBUF_VARINT);
        return write_number(field, value, raw, err);
    case AS_BOOL:
        write_tag(raw, field, PROTOBUF_VARINT);
        write_varint(raw, json_is_true(value));
        return json_is_boolean(value) ? ERR_NONE : wrong(field, "true or false", err);
    case AS_DOUBLE:
        if (!read_double(value, &real))
            return wrong(field, "a number", err);
        write_tag(raw, field, PROTOBUF_FIXED64);
        buf_append_f64(raw, real);
        return ERR_NONE;
    case AS_TEXT:
    case AS_HEX:
    case AS_MARK:
    case AS_MESSAGE:
        break;
    }
    const size_t start = begin_bytes(raw, field);
    if (field->kind == AS_TEXT && !json_is_string(value))
        return wrong(field, "text", err);
    if (field->kind == AS_TEXT)
        buf_append(raw, json_string_value(value), json_string_length(value));
    if (field->kind == AS_HEX && !write_hex(value, raw))
        return wrong(field, "hexadecimal text", err);
    end_bytes(raw, start);
    return ERR_NONE;
}

/* ---- messages ---- */

static enum err_code write_fields(const struct json_field *fields, const json_t *object,
                                  struct buf *raw, struct err *err);

static enum err_code write_one(const struct json_field *field, const json_t *value, struct buf *raw,
                               struct err *err)
{
    if (field->kind != AS_MESSAGE)
        return write_simple(field, value, raw, err);
    if (!json_is_object(value))
        return wrong(field, "an object", err);
    const size_t start = begin_bytes(raw, field);
    enum err_code code = write_fields(field->message, value, raw, err);
    end_bytes(raw, start);
    return code;
}

static enum err_code write_list(const struct json_field *field, const json_t *list, struct buf *raw,
                                struct err *err)
{
    const bool is_packed = field->kind == AS_NUMBER || field->kind == AS_FIXED64;
    const size_t count = json_array_size(list);
    enum err_code code = ERR_NONE;
    if (!json_is_array(list))
        return wrong(field, "a list", err);
    if (count == 0)
        return ERR_NONE;
    const size_t start = is_packed ? begin_bytes(raw, field) : 0;
    for (size_t i = 0; i < count && !code; i++) {
        const json_t *value = json_array_get(list, i);
        code = is_packed ? write_number(field, value, raw, err) : write_one(field, value, raw, err);
    }
    if (is_packed)
        end_bytes(raw, start);
    return code;
}

/* The schema has no cycles, so the recursion is as deep as the schema. */
static enum err_code write_fields(const struct json_field *fields, const json_t *object,
                                  struct buf *raw, struct err *err)
{
    enum err_code code = ERR_NONE;
    for (const struct json_field *field = fields; field->name && !code; field++) {
        const json_t *value = json_object_get(object, field->name);
        if (!value)
            value = json_object_get(object, field->proto_name);
        if (!value || json_is_null(value))
            continue;
        code = field->is_repeated ? write_list(field, value, raw, err)
                                  : write_one(field, value, raw, err);
    }
    return code;
}

enum err_code otlp_json_to_wire(struct span text, const struct profile_limits *limits,
                                struct buf *raw, struct err *err)
{
    json_t *root;
    enum err_code code = json_tree_load(text, limits, "OTLP in JSON", &root, err);
    if (code)
        return code;
    code = json_is_object(root)
               ? write_fields(request_fields, root, raw, err)
               : err_set(err, ERR_INVALID, "OTLP in JSON: the request is not an object");
    json_tree_free(root, text);
    if (code)
        return code;
    if (buf_failed(raw))
        return err_set(err, ERR_TOO_LARGE, "the OTLP request takes more than %zu bytes",
                       raw->max_size);
    return ERR_NONE;
}
