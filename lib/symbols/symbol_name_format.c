#include "lib/symbols/symbol_name_format.h"

#include "lib/base/buf.h"
#include "lib/symbols/symbol_names.h"

bool symbol_name_format_parse(struct span word, enum symbol_name_format_mode *ret_mode)
{
    static const char *const words[] = {[SYMBOL_NAME_FORMAT_FULL] = "full",
                                        [SYMBOL_NAME_FORMAT_SIMPLE] = "simple",
                                        [SYMBOL_NAME_FORMAT_NONE] = "none"};
    for (int i = SYMBOL_NAME_FORMAT_FULL; i <= SYMBOL_NAME_FORMAT_NONE; i++) {
        if (span_equal_text(word, words[i])) {
            *ret_mode = (enum symbol_name_format_mode)i;
            return true;
        }
    }
    return false;
}

/* ---- text ---- */

struct cutter {
    struct span text;
    size_t at;
    struct buf *output;
    size_t name_start;    /* in output, after words such as "virtual thunk to" */
    size_t kept_brackets; /* open angle brackets that are copied: <Type as Trait> */
    bool is_operator;
};

static struct span remaining_text(const struct cutter *cutter)
{
    return span_of(cutter->text.data + cutter->at, cutter->text.size - cutter->at);
}

static bool is_ahead(const struct cutter *cutter, const char *text)
{
    return span_starts_with(remaining_text(cutter), text);
}

static uint8_t byte_at(const struct cutter *cutter, size_t at)
{
    return at < cutter->text.size ? cutter->text.data[at] : 0;
}

static void copy_bytes(struct cutter *cutter, size_t size)
{
    buf_append(cutter->output, cutter->text.data + cutter->at, size);
    cutter->at += size;
}

static uint8_t last_byte(const struct cutter *cutter)
{
    return cutter->output->size > cutter->name_start
               ? cutter->output->data[cutter->output->size - 1]
               : 0;
}

static bool is_word(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '$' || byte >= 0x80;
}

/* Skips the text that an opening bracket encloses, including the closing bracket; to the end of
 * the text if it is not closed. Brackets inside may be of any kind; the '>' of "->" closes
 * nothing. */
static void skip_enclosed(struct cutter *cutter)
{
    size_t depth = 0, angles = 0;
    for (; cutter->at < cutter->text.size; cutter->at++) {
        const uint8_t byte = cutter->text.data[cutter->at];
        if (byte == '(' || byte == '[' || byte == '{')
            depth++;
        else if (byte == ')' || byte == ']' || byte == '}')
            depth -= depth > 0;
        else if (byte == '<' && depth == 0)
            angles++;
        else if (byte == '>' && depth == 0 && byte_at(cutter, cutter->at - 1) != '-')
            angles -= angles > 0;
        if (depth == 0 && angles == 0) {
            cutter->at++;
            return;
        }
    }
}

/* ---- parts of a name ---- */

/* Copies "operator" and its symbol, which may consist of brackets. */
static bool copy_operator(struct cutter *cutter)
{
    static const char *const signs[] = {"()", "[]", "<=>", "<<=", ">>=", "->*",    "->",       "<<",
                                        ">>", "<=", ">=",  "<",   ">",   " new[]", " delete[]"};
    const size_t word = sizeof("operator") - 1;
    if (!is_ahead(cutter, "operator") || is_word(last_byte(cutter)) ||
        is_word(byte_at(cutter, cutter->at + word)))
        return false;
    copy_bytes(cutter, word);
    cutter->is_operator = true;
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (is_ahead(cutter, signs[i])) {
            copy_bytes(cutter, strlen(signs[i]));
            break;
        }
    }
    if (is_ahead(cutter, " <")) /* "operator<< <char>" */
        cutter->at++;
    return true;
}

static void skip_qualifiers(struct cutter *cutter)
{
    static const char *const words[] = {" const", " volatile", " &&", " &", " noexcept"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]);) {
        if (is_ahead(cutter, words[i])) {
            cutter->at += strlen(words[i]);
            i = 0;
        } else {
            i++;
        }
    }
}

/* Removes a parameter list, and everything after the last one. Words after "decltype (…)" are
 * the name. */
static void cut_parentheses(struct cutter *cutter)
{
    static const char anonymous[] = "(anonymous namespace)";
    if (is_ahead(cutter, anonymous)) {
        copy_bytes(cutter, sizeof(anonymous) - 1);
        return;
    }
    skip_enclosed(cutter);
    skip_qualifiers(cutter);
    if (!is_ahead(cutter, "::") && (!is_ahead(cutter, " ") || is_ahead(cutter, " [")))
        cutter->at = cutter->text.size;
    cutter->is_operator = false;
}

/* Removes template arguments. Rust's "<Type as Trait>" at the start of a name is kept. */
static void cut_angles(struct cutter *cutter)
{
    const uint8_t before = last_byte(cutter);
    const bool is_first = before == 0 || before == '<' || before == ' ' || before == '&';
    if (!cutter->is_operator && (is_first || is_ahead(cutter, "<impl "))) {
        copy_bytes(cutter, 1);
        cutter->kept_brackets++;
        return;
    }
    skip_enclosed(cutter);
    struct buf *output = cutter->output;
    if (before == ':' && output->size >= cutter->name_start + 2) /* Rust's "name::<Type>" */
        output->size -= 2;
}

/* Copies "{lambda(int)#1}" without its parameters. */
static void copy_braces(struct cutter *cutter)
{
    size_t depth = 0;
    while (cutter->at < cutter->text.size) {
        const uint8_t byte = cutter->text.data[cutter->at];
        if (byte == '(' || byte == '<') {
            skip_enclosed(cutter);
            continue;
        }
        depth += byte == '{';
        depth -= byte == '}';
        copy_bytes(cutter, 1);
        if (depth == 0)
            return;
    }
}

/* The text before a space was the return type, so the output is discarded. */
static void cut_at_space(struct cutter *cutter)
{
    cutter->at++;
    if (cutter->is_operator)
        buf_append_byte(cutter->output, ' '); /* "operator unsigned int" */
    else
        cutter->output->size = cutter->name_start;
}

static void cut_square_brackets(struct cutter *cutter)
{
    if (is_ahead(cutter, "[abi:"))
        skip_enclosed(cutter);
    else
        copy_bytes(cutter, 1);
}

static void cut_step(struct cutter *cutter)
{
    const uint8_t byte = cutter->text.data[cutter->at];
    if (byte == 'o' && copy_operator(cutter))
        return;
    if (byte == '<') {
        cut_angles(cutter);
    } else if (cutter->kept_brackets) {
        cutter->kept_brackets -= byte == '>' && byte_at(cutter, cutter->at - 1) != '-';
        copy_bytes(cutter, 1);
    } else if (byte == '(') {
        cut_parentheses(cutter);
    } else if (byte == '{') {
        copy_braces(cutter);
    } else if (byte == '[') {
        cut_square_brackets(cutter);
    } else if (byte == ' ') {
        cut_at_space(cutter);
    } else {
        copy_bytes(cutter, 1);
    }
}

static void append_simple(struct span full, struct buf *output)
{
    static const char *const prefixes[] = {"non-virtual thunk to ", "virtual thunk to ",
                                           "covariant return thunk to "};
    struct cutter cutter = {.text = full, .output = output};
    const size_t start = output->size;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (is_ahead(&cutter, prefixes[i]))
            copy_bytes(&cutter, strlen(prefixes[i]));
    }
    cutter.name_start = output->size;
    while (cutter.at < full.size)
        cut_step(&cutter);
    if (output->size == cutter.name_start) { /* no part looks like a name */
        output->size = start;
        buf_append_span(output, full);
    }
}

/* DWARF contains only the display name of functions that no other unit can call: those of C++
 * and Rust have template arguments. Names of Go contain other brackets first, names of C none. */
static bool has_template_arguments(struct span name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '<')
            return true;
        if (name.data[i] == '(' || name.data[i] == '[')
            return false;
    }
    return false;
}

static bool can_be_cut(const struct symbol_name *name)
{
    if (span_equal(name->full, name->linkage))
        return has_template_arguments(name->full);
    return span_starts_with(name->linkage, "_Z") || span_starts_with(name->linkage, "_R");
}

void symbol_name_format_append(const struct symbol_name *name, enum symbol_name_format_mode mode,
                               struct buf *output)
{
    if (mode == SYMBOL_NAME_FORMAT_NONE)
        buf_append_span(output, name->linkage);
    else if (mode == SYMBOL_NAME_FORMAT_SIMPLE && can_be_cut(name))
        append_simple(name->full, output);
    else
        buf_append_span(output, name->full);
}
