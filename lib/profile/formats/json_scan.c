#include "lib/profile/formats/json_scan.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"

/* Heap memory of jansson 2.14 on a 64-bit machine, including malloc's overhead: an object with a
 * table of eight buckets, an array with eight slots, a member with key and links (per ":"), an
 * element with its slot and number (per ","), and the additional memory of a text that is not a
 * key. */
enum {
    OBJECT_BYTES = 272,
    ARRAY_BYTES = 96,
    MEMBER_BYTES = 96,
    ELEMENT_BYTES = 48,
    TEXT_BYTES = 48
};

static size_t skip_space(struct span text, size_t at)
{
    while (at < text.size &&
           (text.data[at] == ' ' || (text.data[at] >= '\t' && text.data[at] <= '\r')))
        at++;
    return at;
}

/* Returns the position after the closing quote of the string that begins at `at`. */
static size_t skip_string(struct span text, size_t at)
{
    for (at++; at < text.size && text.data[at] != '"'; at++) {
        if (text.data[at] == '\\')
            at++;
    }
    return at < text.size ? at + 1 : text.size;
}

bool json_scan_is_object(struct span text)
{
    size_t at = skip_space(text, 0);
    if (at == text.size || text.data[at] != '{')
        return false;
    at = skip_space(text, at + 1);
    return at < text.size && (text.data[at] == '"' || text.data[at] == '}');
}

static uint64_t match_names(struct span member, const char *const *names, size_t count)
{
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (names[i] && span_equal_text(member, names[i]))
            found |= (uint64_t)1 << i;
    }
    return found;
}

uint64_t json_scan_find_members(struct span text, const char *const *names, size_t count)
{
    const uint64_t all = count < 64 ? ((uint64_t)1 << count) - 1 : UINT64_MAX;
    uint64_t found = 0;
    size_t depth = 0;
    for (size_t at = 0; at < text.size && found != all;) {
        uint8_t byte = text.data[at];
        if (byte == '"') {
            size_t end = skip_string(text, at);
            size_t colon = skip_space(text, end);
            if (depth == 1 && colon < text.size && text.data[colon] == ':')
                found |= match_names(span_of(text.data + at + 1, end - at - 2), names, count);
            at = end;
            continue;
        }
        if (byte == '{' || byte == '[')
            depth++;
        else if ((byte == '}' || byte == ']') && --depth == 0)
            break;
        at++;
    }
    return found;
}

bool json_scan_has_member(struct span text, const char *name)
{
    return json_scan_find_members(text, &name, 1) != 0;
}

enum err_code json_scan_check(struct span text, size_t limit_bytes, struct err *err)
{
    if (text.size > limit_bytes)
        return err_set(err, ERR_TOO_LARGE, "JSON of %zu bytes; the limit is %zu", text.size,
                       limit_bytes);
    uint64_t tree_bytes = text.size;
    for (size_t at = 0; at < text.size;) {
        uint8_t byte = text.data[at];
        if (byte == '"') {
            at = skip_space(text, skip_string(text, at));
            tree_bytes += at < text.size && text.data[at] == ':' ? 0 : TEXT_BYTES;
            continue;
        }
        if (byte == '{')
            tree_bytes += OBJECT_BYTES;
        else if (byte == '[')
            tree_bytes += ARRAY_BYTES;
        else if (byte == ':')
            tree_bytes += MEMBER_BYTES;
        else if (byte == ',')
            tree_bytes += ELEMENT_BYTES;
        at++;
    }
    if (tree_bytes > (uint64_t)limit_bytes * JSON_SCAN_TREE_RATIO)
        return err_set(err, ERR_TOO_LARGE,
                       "JSON with so many values that parsing it would take %llu MiB; the limit is "
                       "%llu MiB",
                       (unsigned long long)(tree_bytes >> 20),
                       (unsigned long long)((uint64_t)limit_bytes * JSON_SCAN_TREE_RATIO >> 20));
    return ERR_NONE;
}

void json_scan_trim(struct span text)
{
    enum { LARGE_BYTES = 2 << 20 };
    if (text.size >= LARGE_BYTES)
        mem_trim();
}
