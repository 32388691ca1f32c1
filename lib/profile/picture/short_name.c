#include "lib/profile/picture/short_name.h"

#include <ctype.h>
#include <string.h>

/* Result of a search that found nothing. */
enum { NOWHERE = SIZE_MAX };

static bool is_one_of(uint8_t byte, const char *bytes)
{
    return byte && strchr(bytes, byte);
}

static bool is_word(uint8_t byte)
{
    return (byte < 0x80 && isalnum(byte)) || byte == '_';
}

/* Whether the byte may be the last one of a name. */
static bool is_in_name(uint8_t byte)
{
    return is_word(byte) || byte == '$' || byte == '~' || byte >= 0x80;
}

static struct span from(struct span text, size_t at)
{
    return span_of(text.data + at, text.size - at);
}

static struct span first(struct span text, size_t size)
{
    return span_of(text.data, size < text.size ? size : text.size);
}

static bool ends_with(struct span text, const char *end)
{
    const size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

static size_t find(struct span text, const char *wanted)
{
    const uint8_t *at = text.size ? memmem(text.data, text.size, wanted, strlen(wanted)) : NULL;
    return at ? (size_t)(at - text.data) : (size_t)NOWHERE;
}

/* Adds a form if it is shorter than the last one. */
static void add(struct short_name *made, struct span form)
{
    if (form.size && form.size < made->forms[made->count - 1].size &&
        made->count < SHORT_NAME_FORMS)
        made->forms[made->count++] = form;
}

/* ---- paths ---- */

/* Removes the offset of "/usr/lib/x.so.6+0x2a10". */
static struct span without_offset(struct span name)
{
    size_t at = name.size;
    while (at && isxdigit(name.data[at - 1]) && !isupper(name.data[at - 1]))
        at--;
    return at < name.size && ends_with(first(name, at), "+0x") ? first(name, at - 3) : name;
}

static bool is_file(struct span name)
{
    static const char *const endings[] = {
        ".so",   ".dll",   ".exe", ".dylib", ".jar",  ".ko",  ".wasm", ".go",   ".rs",
        ".c",    ".cc",    ".cpp", ".cxx",   ".h",    ".hh",  ".hpp",  ".java", ".kt",
        ".cs",   ".scala", ".py",  ".pyx",   ".rb",   ".php", ".pl",   ".lua",  ".js",
        ".jsx",  ".mjs",   ".cjs", ".ts",    ".tsx",  ".mts", ".cts",  ".mjsx", ".cjsx",
        ".mtsx", ".s",     ".S",   ".ctsx",  ".swift"};
    const struct span file = without_offset(name);
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        if (ends_with(file, endings[i]))
            return true;
    }
    /* "libc.so.6": a version follows ".so." */
    for (size_t at = find(file, ".so."); at != NOWHERE;) {
        bool is_version = at + 4 < file.size;
        for (size_t i = at + 4; i < file.size; i++)
            is_version &= is_word(file.data[i]) || is_one_of(file.data[i], ".-");
        if (is_version)
            return true;
        const size_t next = find(from(file, at + 1), ".so.");
        at = next == NOWHERE ? next : at + 1 + next;
    }
    return false;
}

static struct span without_path(struct span name)
{
    size_t head = 0, start = 0;
    while (head < name.size && !is_one_of(name.data[head], "(<["))
        head++;
    if (find(first(name, head), "::") != NOWHERE)
        return name;
    /* A slash after a blank is a division: "lambda x: x/2". */
    for (size_t i = 0; i < head && i + 1 < name.size && name.data[i] != ' '; i++) {
        if (name.data[i] == '/' && !is_one_of(name.data[i + 1], "/(<["))
            start = i + 1;
    }
    return from(name, start);
}

/* ---- arguments ---- */

/* The position of the word "operator" in a C++ name. */
static size_t operator_at(struct span name)
{
    static const char word[] = "operator";
    const size_t size = sizeof(word) - 1;
    for (size_t i = 0; i + size <= name.size; i++) {
        const uint8_t before = i ? name.data[i - 1] : ' ';
        const bool is_whole = i + size == name.size || !is_word(name.data[i + size]);
        if (memcmp(name.data + i, word, size) == 0 && is_whole && !is_word(before) &&
            !is_one_of(before, "$~"))
            return i;
    }
    return NOWHERE;
}

/* The size of the operator at the start of text, if it contains brackets; else 0. */
static size_t operator_size(struct span text)
{
    static const char *const signs[] = {"()", "[]", "new[]", "delete[]", "<=>", "<<=", "<<", ">>=",
                                        ">>", "<=", "<",     ">=",       ">",   "->*", "->"};
    size_t at = strlen("operator");
    if (!span_starts_with(text, "operator"))
        return 0;
    while (at < text.size && isspace(text.data[at]))
        at++;
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
        if (span_starts_with(from(text, at), signs[i]))
            return at + strlen(signs[i]);
    }
    return 0;
}

/* Removes balanced <…>, (…), […] and their contents; false if they are not balanced. */
static bool drop_arguments(struct span name, bool is_scoped, struct short_name *made,
                           struct span *ret_text)
{
    uint8_t *text = (uint8_t *)made->text;
    size_t size = 0, depth = 0;
    for (size_t at = 0; at < name.size; at++) {
        const bool is_named = size && is_in_name(text[size - 1]);
        const size_t sign = depth || is_named ? 0 : operator_size(from(name, at));
        const uint8_t byte = name.data[at];
        if (sign) {
            memcpy(text + size, name.data + at, sign);
            size += sign;
            at += sign - 1;
            continue;
        }
        const bool is_opening = is_one_of(byte, "<([") &&
                                (depth || is_named || (is_scoped && byte != '[') ||
                                 (byte == '(' && operator_at(span_of(text, size)) != NOWHERE));
        if (is_opening && !depth && byte == '(' && !is_scoped)
            break; /* "run()V" */
        depth += is_opening;
        if (!depth)
            text[size++] = byte;
        else if (is_one_of(byte, ")]") || (byte == '>' && name.data[at - 1] != '-'))
            depth--;
    }
    *ret_text = span_of(text, size);
    return depth == 0;
}

static bool is_hash(struct span text)
{
    bool is_hex = text.size == 16;
    for (size_t i = 0; i < text.size; i++)
        is_hex &= isdigit(text.data[i]) || (text.data[i] >= 'a' && text.data[i] <= 'f');
    return is_hex;
}

/* The size of a suffix that compilers add: " const", " [clone .cold]", ".part.0",
 * "::h0123456789abcdef". */
static size_t tail_size(struct span name)
{
    static const char *const tails[] = {" const", " volatile", " noexcept",  " &&",
                                        " &",     ".part",     ".constprop", ".isra",
                                        ".cold",  ".lto_priv", ".llvm",      "::"};
    size_t digits = name.size;
    for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
        if (ends_with(name, tails[i]))
            return strlen(tails[i]);
    }
    if (name.size >= 19 && is_hash(from(name, name.size - 16)) &&
        ends_with(first(name, name.size - 16), "::h"))
        return 19;
    if (ends_with(name, "]")) {
        for (size_t i = name.size - 1; i-- > 0 && name.data[i] != ']';) {
            if (span_starts_with(from(name, i), " [clone "))
                return name.size - i;
        }
    }
    while (digits && isdigit(name.data[digits - 1]))
        digits--;
    if (digits == name.size || !digits || name.data[digits - 1] != '.')
        return 0;
    const size_t before = tail_size(first(name, digits - 1));
    return before && name.data[digits - 1 - before] == '.' ? name.size - digits + 1 + before : 0;
}

static struct span without_tail(struct span name)
{
    for (size_t size; (size = tail_size(name)) > 0;)
        name = first(name, name.size - size);
    return name;
}

/* Removes the gaps of "a::::b", from which a part was removed, and of "::b". */
static struct span without_gaps(struct span name, struct short_name *made)
{
    uint8_t *text = (uint8_t *)made->text;
    size_t size = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (span_starts_with(from(name, i), "::::"))
            i++;
        else
            text[size++] = name.data[i];
    }
    name = span_of(text, size);
    return span_starts_with(name, "::") ? from(name, 2) : name;
}

/* Removes the type of "void std::sort", but not at the space within "{unnamed type#1}". */
static struct span without_type(struct span name)
{
    const size_t sign = operator_at(name);
    size_t space = sign == NOWHERE ? name.size : sign + 1;
    while (space && name.data[space - 1] != ' ')
        space--;
    for (size_t i = space; i < name.size && name.data[i] != '{'; i++) {
        if (name.data[i] == '}')
            return name;
    }
    return from(name, space);
}

static struct span without_arguments(struct span name, struct short_name *made)
{
    const bool is_scoped = find(name, "::") != NOWHERE;
    struct span text;
    if (!drop_arguments(name, is_scoped, made, &text))
        return name;
    text = without_gaps(without_tail(text), made);
    if (is_scoped || text.size < name.size)
        text = without_type(text);
    while (text.size && text.data[text.size - 1] == ' ')
        text.size--;
    return text.size ? text : name;
}

/* ---- packages and name spaces ---- */

/* The start of the part that ends at `end`. */
static size_t part_before(struct span name, size_t end)
{
    while (end && !(end >= 2 && name.data[end - 1] == ':' && name.data[end - 2] == ':'))
        end--;
    return end;
}

/* Whether the part is a lambda or closure. */
static bool is_lambda(struct span name, size_t start)
{
    const struct span part = from(name, start);
    return span_starts_with(part, "{") || span_starts_with(part, "$_") ||
           span_starts_with(part, "'");
}

/* The last part; for a lambda or closure, from the name of the function that contains it. */
static struct span last_part(struct span name)
{
    const size_t sign = operator_at(name);
    size_t start = part_before(name, sign == NOWHERE ? name.size : sign);
    if (span_equal_text(from(name, start), "operator()") && start >= 2 &&
        is_lambda(name, part_before(name, start - 2)))
        start = part_before(name, start - 2);
    while (start >= 2 && is_lambda(name, start))
        start = part_before(name, start - 2);
    return from(name, start);
}

/* Adds forms without the outer name spaces, one by one. "operator()" and "run" alone mean little,
 * so the class is dropped last. */
static void add_scoped(struct short_name *made, struct span bare)
{
    const struct span last = last_part(bare);
    const size_t start = bare.size - last.size;
    const size_t near = start >= 2 ? part_before(bare, start - 2) : start;
    add(made, from(bare, near >= 2 ? part_before(bare, near - 2) : near));
    add(made, from(bare, near));
    add(made, last);
}

/* Removes "main." of "main.run"; leaves "libc.6" and "a..b" unchanged. */
static struct span without_package(struct span name)
{
    size_t dot = 0;
    while (dot < name.size && (is_word(name.data[dot]) || is_one_of(name.data[dot], "$%-")))
        dot++;
    if (dot == 0 || dot + 1 >= name.size || name.data[dot] != '.' || name.data[dot + 1] == '.' ||
        isdigit(name.data[dot + 1]))
        return name;
    return from(name, dot + 1);
}

/* "(*DB).Query" as "DB.Query", appended to made->text. */
static struct span without_receiver(struct span name, struct short_name *made)
{
    size_t start = span_starts_with(name, "(*") ? 2 : 1, end = start;
    while (end < name.size && !is_one_of(name.data[end], ") "))
        end++;
    if (!span_starts_with(name, "(") || !span_starts_with(from(name, end), ")."))
        return name;
    uint8_t *text = (uint8_t *)made->text + SHORT_NAME_BYTES / 2;
    memcpy(text, name.data + start, end - start);
    memcpy(text + end - start, name.data + end + 1, name.size - end - 1);
    return span_of(text, name.size - start - 1);
}

/* Whether the name is a package followed by a part that begins with a capital letter, so that
 * "acme.Foo.run" keeps its class. */
static bool has_package(struct span name)
{
    size_t at = 0;
    if (name.size == 0 || name.data[0] < 'a' || name.data[0] > 'z')
        return false;
    while (at < name.size && is_word(name.data[at]))
        at++;
    if (at == name.size || name.data[at] != '.')
        return false;
    for (; at + 1 < name.size; at++) {
        if (name.data[at] != '.' || name.data[at + 1] < 'A' || name.data[at + 1] > 'Z')
            continue;
        size_t end = at + 2;
        while (end < name.size && (is_word(name.data[end]) || name.data[end] == '$'))
            end++;
        if (end < name.size && name.data[end] == '.')
            return true;
    }
    return false;
}

/* Whether the name would mean something else if it were shortened: "-[NSString length]",
 * "<module>". */
static bool is_whole(struct span name)
{
    return span_starts_with(name, "-[") || span_starts_with(name, "+[") ||
           (span_starts_with(name, "<") && find(name, "::") == NOWHERE);
}

void short_name_make(struct span name, struct short_name *ret_short)
{
    struct short_name *made = ret_short;
    made->count = 1;
    made->forms[0] = name;
    if (name.size > SHORT_NAME_BYTES / 2 || is_whole(name))
        return;
    const struct span pathless = without_path(name);
    add(made, pathless);
    if (is_file(pathless))
        return;
    const struct span bare = without_arguments(pathless, made);
    add(made, bare);
    if (find(bare, "::") != NOWHERE) {
        add_scoped(made, bare);
        return;
    }
    struct span rest = bare;
    do {
        rest = without_package(rest);
        add(made, without_receiver(rest, made));
    } while (has_package(rest));
}
