#include "lib/profile/picture/frame_package.h"

#include "lib/base/span.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/report/view.h"

#include <ctype.h>
#include <string.h>

/* Only this many UTF-16 units of a name are examined, which bounds the cost; the page has the same
 * limit. */
enum { EXAMINED_UNITS = 600 };

/* Result of a search that found nothing. */
enum { NOWHERE = SIZE_MAX };

static bool is_word(uint8_t byte)
{
    return (byte < 0x80 && isalnum(byte)) || byte == '_';
}

static struct span first(struct span text, size_t size)
{
    return span_of(text.data, size);
}

static struct span from(struct span text, size_t at)
{
    return at ? span_of(text.data + at, text.size - at) : text; /* data of an empty span is NULL */
}

static bool starts_with(struct span text, const char *begin)
{
    const size_t size = strlen(begin);
    return text.size >= size && memcmp(text.data, begin, size) == 0;
}

static size_t find_byte(struct span text, uint8_t byte, size_t begin)
{
    for (size_t at = begin; at < text.size; at++) {
        if (text.data[at] == byte)
            return at;
    }
    return NOWHERE;
}

static size_t find_last(struct span text, const char *bytes)
{
    for (size_t at = text.size; at > 0; at--) {
        if (memchr(bytes, text.data[at - 1], strlen(bytes)))
            return at - 1;
    }
    return NOWHERE;
}

/* The part of a name that the page examines. */
static struct span examined_part(struct span name)
{
    size_t at = 0;
    for (size_t units = 0; at < name.size && units < EXAMINED_UNITS;) {
        const size_t size = span_utf8_size(from(name, at));
        units += size == 4 ? 2 : 1; /* of UTF-16, as in the page */
        at += size ? size : span_broken_utf8_size(from(name, at));
    }
    return first(name, at);
}

/* Removes the address that grouping by address puts before the name. */
static struct span without_address(struct span name)
{
    if (!starts_with(name, "0x"))
        return name;
    size_t at = 2;
    while (at < name.size && isxdigit(name.data[at]) && !isupper(name.data[at]))
        at++;
    return at > 2 && at < name.size && name.data[at] == ' ' ? from(name, at + 1) : name;
}

/* The script of a name that V8 writes to perf maps, "LazyCompile:*render /app/src/page.js:12";
 * empty for other names. */
static struct span script_of(struct span name)
{
    size_t at = 0;
    while (at < name.size && is_word(name.data[at]))
        at++;
    const size_t space = find_byte(name, ' ', at);
    if (at == 0 || space == NOWHERE || name.data[at] != ':' || name.data[at + 1] == ':')
        return (struct span){0};
    for (size_t i = at; i < name.size; i++) {
        if (i != space && isspace(name.data[i]))
            return (struct span){0};
    }
    struct span script = from(name, space + 1);
    if (starts_with(script, "file://") && script.size > strlen("file://"))
        script = from(script, strlen("file://"));
    for (;;) {
        size_t end = script.size;
        while (end > 0 && isdigit(script.data[end - 1]))
            end--;
        if (end == script.size || end < 2 || script.data[end - 1] != ':')
            break;
        script.size = end - 1;
    }
    return script;
}

/* The end of the word that begins at `at`, which may contain pairs of "<" and ">"; `at` itself if
 * there is no word. */
static size_t word_end(struct span name, size_t at)
{
    while (at < name.size && name.data[at] != ' ' && name.data[at] != '(') {
        if (name.data[at] == '<') {
            size_t end = at + 1;
            while (end < name.size && !memchr("()<>", name.data[end], 4))
                end++;
            if (end >= name.size || name.data[end] != '>')
                break;
            at = end;
        }
        at++;
    }
    return at;
}

static bool is_scope_at(struct span name, size_t at)
{
    const size_t begin = at;
    while (at < name.size && is_word(name.data[at]))
        at++;
    return at > begin && starts_with(from(name, at), "::");
}

/* Removes the signs of Rust and C++ before a name, and the return type that C++ writes before the
 * name of an instantiated template function: "void std::sort<int>". */
static struct span without_begin(struct span name)
{
    static const char *const signs[] = {"<", "&", "*", "dyn ", "impl "};
    size_t at = 0;
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs);) {
        const bool is_sign = starts_with(from(name, at), signs[i]);
        at += is_sign ? strlen(signs[i]) : 0;
        i = is_sign ? 0 : i + 1;
    }
    if (at)
        return from(name, at);
    size_t begin = 0;
    for (;;) {
        const size_t end = word_end(name, at);
        if (end == at || end >= name.size || name.data[end] != ' ')
            break;
        const bool is_operator = end - at >= 8 && memcmp(name.data + end - 8, "operator", 8) == 0;
        at = end + 1;
        if (!is_operator && is_scope_at(name, at))
            begin = at;
    }
    return from(name, begin);
}

/* The package of a dotted name: up to the first dot, or up to the second if there are at least
 * three, as in "org.acme.Shop.run". */
static struct span dotted_package(struct span name, size_t dot)
{
    size_t dots = 0, second = NOWHERE;
    for (size_t at = dot; at != NOWHERE; at = find_byte(name, '.', at + 1)) {
        dots++;
        if (dots == 2)
            second = at;
    }
    return first(name, dots >= 3 ? second : dot);
}

struct span frame_base_name(struct span path)
{
    const size_t slash = find_last(path, "/");
    return slash == NOWHERE ? path : from(path, slash + 1);
}

struct span frame_package(const struct frame *frame)
{
    const bool is_file = span_equal(frame->name, frame->file);
    const struct span name =
        is_file ? (struct span){0} : without_address(examined_part(frame->name));
    const struct span script = script_of(name);
    if (script.size) {
        const size_t end = find_last(script, "/:");
        return end == NOWHERE || end == 0 ? script : first(script, end);
    }
    struct span plain = without_begin(name);
    for (size_t at = 0; at < plain.size; at++) {
        if (memchr("<({[", plain.data[at], 4))
            plain.size = at;
    }
    for (size_t at = 0; at + 1 < plain.size; at++) {
        if (plain.data[at] == ':' && plain.data[at + 1] == ':')
            return first(plain, at);
    }
    const size_t slash = find_last(plain, "/");
    const size_t dot = find_byte(plain, '.', slash == NOWHERE ? 0 : slash + 1);
    if (slash != NOWHERE && dot != NOWHERE)
        return first(plain, dot);
    if (dot != NOWHERE && dot > 0)
        return dotted_package(plain, dot);
    if (frame->mapping.size && !is_file)
        return frame_base_name(frame->mapping);
    const size_t folder = find_last(frame->file, "/");
    return folder != NOWHERE && folder > 0 ? first(frame->file, folder) : frame->file;
}
