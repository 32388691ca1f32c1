/* Reads rules from YAML (relabel.h). Anything outside of the supported subset is an error. */
#include "agent/labels/label_set.h"
#include "agent/labels/relabel_rule.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/regex/regex.h"

#include <strings.h>

enum { NO_LIST = -1 };

struct reader {
    struct arena *arena;
    struct err *err;
    struct relabel_rules *rules;
    struct relabel_rule *rule; /* the rule that is being read; NULL: none yet */
    struct relabel_rule **end;
    uint32_t count;
    uint32_t line;
    int list_indent; /* column of the dashes of rules; NO_LIST: none yet */
    int key_indent;  /* column of the keys of the current rule */
    bool has_head;   /* the key relabel_configs was read */
    bool is_in_sources;
    bool has_separator, has_regex, has_target, has_replacement, has_modulus;
};

static enum err_code refuse_rules(struct reader *reader, const char *problem)
{
    return err_set(reader->err, ERR_INVALID, "line %u: %s", reader->line, problem);
}

/* ---- scalars ---- */

/* The line without its comment, which begins at a '#' after a blank, outside of quotes. */
static struct span without_comment(struct span line)
{
    uint8_t quote = 0;
    for (size_t i = 0; i < line.size; i++) {
        const uint8_t c = line.data[i];
        const bool is_after_blank = i == 0 || line.data[i - 1] == ' ';
        const bool is_doubled = i + 1 < line.size && line.data[i + 1] == '\'';
        if ((quote == '"' && c == '\\') || (quote == '\'' && c == quote && is_doubled))
            i++;
        else if (quote)
            quote = c == quote ? 0 : quote;
        else if ((c == '"' || c == '\'') &&
                 (is_after_blank || line.data[i - 1] == '[' || line.data[i - 1] == ','))
            quote = c;
        else if (c == '#' && is_after_blank)
            return span_of(line.data, i);
    }
    return line;
}

static enum err_code read_escape(struct reader *reader, uint8_t letter, struct buf *text)
{
    static const char letters[] = "\\\"/ntr0", bytes[] = "\\\"/\n\t\r";
    const char *at = letter ? strchr(letters, letter) : NULL;
    if (!at || letter == '0')
        return refuse_rules(reader, "this escape in double quotes is not read; use single quotes");
    buf_append_byte(text, (uint8_t)bytes[at - letters]);
    return ERR_NONE;
}

/* Reads a quoted text; *rest is then what follows the closing quote. */
static enum err_code read_quoted(struct reader *reader, struct span *rest, struct span *ret_text)
{
    const uint8_t quote = rest->data[0];
    enum err_code code = ERR_NONE;
    buf_auto text;
    buf_init(&text, RELABEL_TEXT_MAX_BYTES);
    size_t i = 1;
    for (; !code && i < rest->size; i++) {
        const uint8_t c = rest->data[i];
        const uint8_t next = i + 1 < rest->size ? rest->data[i + 1] : 0;
        if (quote == '"' && c == '\\')
            code = read_escape(reader, next, &text), i++;
        else if (c == quote && quote == '\'' && next == quote)
            buf_append_byte(&text, c), i++;
        else if (c == quote)
            break;
        else
            buf_append_byte(&text, c);
    }
    if (code)
        return code;
    if (i >= rest->size)
        return refuse_rules(reader, "a quote is not closed in its line");
    *rest = span_of(rest->data + i + 1, rest->size - i - 1);
    *ret_text = span_of(arena_strndup(reader->arena, text.data, text.size), text.size);
    return ERR_NONE;
}

static enum err_code read_scalar(struct reader *reader, struct span text, struct span *ret_text)
{
    text = span_trim(text);
    if (text.size == 0) {
        *ret_text = SPAN_LITERAL("");
        return ERR_NONE;
    }
    if (text.data[0] == '"' || text.data[0] == '\'') {
        const enum err_code code = read_quoted(reader, &text, ret_text);
        return code || span_trim(text).size == 0
                   ? code
                   : refuse_rules(reader, "something follows the closing quote");
    }
    if (strchr("|>&*!{}[],%@`", text.data[0]))
        return refuse_rules(reader, "this kind of YAML is not read here; put the text into quotes");
    *ret_text = span_of(arena_strndup(reader->arena, text.data, text.size), text.size);
    return ERR_NONE;
}

/* ---- source_labels ---- */

static enum err_code add_source(struct reader *reader, struct span text)
{
    struct relabel_rule *rule = reader->rule;
    struct span name;
    const enum err_code code = read_scalar(reader, text, &name);
    if (code)
        return code;
    if (rule->source_count == RELABEL_SOURCES_MAX)
        return refuse_rules(reader, "there are more than 32 source_labels");
    if (!label_set_is_name(name))
        return refuse_rules(reader, "this is no name of a label");
    rule->sources[rule->source_count++] = name;
    return ERR_NONE;
}

/* Reads "[a, 'b']". */
static enum err_code read_flow_list(struct reader *reader, struct span text)
{
    struct span rest, one;
    if (!span_ends_with(text, "]"))
        return refuse_rules(reader, "a list in brackets ends in its line");
    rest = span_of(text.data + 1, text.size - 2);
    enum err_code code = ERR_NONE;
    while (!code && span_trim(rest).size) {
        span_split(rest, ',', &one, &rest);
        code = add_source(reader, one);
    }
    return code;
}

/* ---- keys ---- */

static enum err_code read_action(struct reader *reader, struct span text)
{
    static const char *const names[RELABEL_ACTION_COUNT] = {
        "replace",   "keep",      "drop",     "keepequal", "dropequal", "hashmod",
        "lowercase", "uppercase", "labelmap", "labeldrop", "labelkeep"};
    for (uint32_t i = 0; i < RELABEL_ACTION_COUNT; i++) {
        if (text.size == strlen(names[i]) &&
            strncasecmp((const char *)text.data, names[i], text.size) == 0) {
            reader->rule->action = (enum relabel_action)i;
            return ERR_NONE;
        }
    }
    return refuse_rules(reader, "there is no such action");
}

static void destroy_regex(void *regex)
{
    regex_destroy(regex);
}

static enum err_code set_regex(struct reader *reader, struct span text)
{
    const enum err_code code = regex_create_whole(text, &reader->rule->regex, reader->err);
    if (code)
        return err_add(reader->err, "line %u", reader->line);
    arena_on_destroy(reader->arena, destroy_regex, reader->rule->regex);
    return ERR_NONE;
}

static enum err_code set_key(struct reader *reader, struct span key, struct span value)
{
    struct relabel_rule *rule = reader->rule;
    reader->is_in_sources = false;
    if (span_equal_text(key, "source_labels")) {
        reader->is_in_sources = value.size == 0;
        if (value.size && value.data[0] != '[')
            return refuse_rules(reader, "source_labels is a list: [one, two]");
        return value.size ? read_flow_list(reader, value) : ERR_NONE;
    }
    struct span text;
    const enum err_code code = read_scalar(reader, value, &text);
    if (code)
        return code;
    if (span_equal_text(key, "action")) {
        return read_action(reader, text);
    }
    if (span_equal_text(key, "regex")) {
        reader->has_regex = true;
        return set_regex(reader, text);
    }
    if (span_equal_text(key, "modulus")) {
        reader->has_modulus = true;
        return span_parse_u64(text, &rule->modulus) ? ERR_NONE
                                                    : refuse_rules(reader, "modulus is a number");
    }
    if (span_equal_text(key, "separator"))
        rule->separator = text, reader->has_separator = true;
    else if (span_equal_text(key, "target_label"))
        rule->target = text, reader->has_target = true;
    else if (span_equal_text(key, "replacement"))
        rule->replacement = text, reader->has_replacement = true;
    else
        return refuse_rules(reader, "there is no such key in a rule");
    return ERR_NONE;
}

/* Reads "key: value" or "key:"; the key may be quoted. */
static enum err_code read_pair(struct reader *reader, struct span text, struct span *ret_key,
                               struct span *ret_value)
{
    struct span rest = text;
    if (text.data[0] == '"' || text.data[0] == '\'') {
        const enum err_code code = read_quoted(reader, &rest, ret_key);
        rest = span_trim(rest);
        if (code || rest.size == 0 || rest.data[0] != ':')
            return code ? code : refuse_rules(reader, "a key is followed by a colon");
        *ret_value = span_trim(span_of(rest.data + 1, rest.size - 1));
        return ERR_NONE;
    }
    const uint8_t *colon = memchr(text.data, ':', text.size);
    if (!colon || (colon + 1 < text.data + text.size && colon[1] != ' '))
        return refuse_rules(reader, "this is no \"key: value\"");
    *ret_key = span_trim(span_of(text.data, (size_t)(colon - text.data)));
    *ret_value = span_trim(span_of(colon + 1, (size_t)(text.data + text.size - (colon + 1))));
    return ERR_NONE;
}

/* ---- whole rules ---- */

/* Whether the text consists of words and references such as $1, as Prometheus checks target_label.
 */
static bool is_target(struct span text)
{
    bool has_reference = false;
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t c = text.data[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        const bool is_digit = c >= '0' && c <= '9';
        has_reference = has_reference || c == '$';
        if (!is_letter && !(is_digit && i) && c != '$' && c != '{' && c != '}')
            return false;
    }
    return text.size && (has_reference || label_set_is_name(text));
}

static enum err_code check_target(struct reader *reader)
{
    const struct relabel_rule *rule = reader->rule;
    if (rule->target.size == 0)
        return refuse_rules(reader, "this action needs a target_label");
    const bool is_right =
        rule->action == RELABEL_REPLACE ? is_target(rule->target) : label_set_is_name(rule->target);
    return is_right ? ERR_NONE : refuse_rules(reader, "target_label is no name of a label");
}

static enum err_code check_rule(struct reader *reader)
{
    const struct relabel_rule *rule = reader->rule;
    switch (rule->action) {
    case RELABEL_KEEPEQUAL:
    case RELABEL_DROPEQUAL:
        if (reader->has_regex || reader->has_modulus || reader->has_separator ||
            reader->has_replacement)
            return refuse_rules(reader, "this action has source_labels and target_label alone");
        return check_target(reader);
    case RELABEL_HASHMOD:
        if (rule->modulus == 0)
            return refuse_rules(reader, "hashmod needs a modulus above 0");
        return check_target(reader);
    case RELABEL_LOWERCASE:
    case RELABEL_UPPERCASE:
        if (reader->has_replacement)
            return refuse_rules(reader, "this action has no replacement");
        return check_target(reader);
    case RELABEL_REPLACE:
        return check_target(reader);
    case RELABEL_LABELMAP:
        return is_target(rule->replacement)
                   ? ERR_NONE
                   : refuse_rules(reader, "the replacement of labelmap is no name of a label");
    case RELABEL_LABELDROP:
    case RELABEL_LABELKEEP:
        if (rule->source_count || reader->has_target || reader->has_modulus ||
            reader->has_separator || reader->has_replacement)
            return refuse_rules(reader, "this action has a regex alone");
        return ERR_NONE;
    case RELABEL_KEEP:
    case RELABEL_DROP:
    case RELABEL_ACTION_COUNT:
        break;
    }
    return ERR_NONE;
}

static enum err_code end_rule(struct reader *reader)
{
    if (!reader->rule)
        return ERR_NONE;
    enum err_code code = check_rule(reader);
    if (!code && !reader->rule->regex)
        code = set_regex(reader, SPAN_LITERAL("(.*)"));
    *reader->end = reader->rule;
    reader->end = &reader->rule->next;
    reader->rule = NULL;
    return code;
}

static enum err_code begin_rule(struct reader *reader)
{
    const enum err_code code = end_rule(reader);
    if (code)
        return code;
    if (reader->count++ == RELABEL_RULES_MAX)
        return refuse_rules(reader, "there are too many rules");
    reader->rule = arena_new(reader->arena, struct relabel_rule, 1);
    reader->rule->separator = SPAN_LITERAL(";");
    reader->rule->replacement = SPAN_LITERAL("$1");
    reader->is_in_sources = false;
    reader->key_indent = NO_LIST;
    reader->has_separator = reader->has_regex = false;
    reader->has_target = reader->has_replacement = reader->has_modulus = false;
    return ERR_NONE;
}

/* ---- lines ---- */

static enum err_code read_head(struct reader *reader, struct span text)
{
    struct span key, value;
    const enum err_code code = read_pair(reader, text, &key, &value);
    if (code)
        return code;
    if (!span_equal_text(key, "relabel_configs") || reader->has_head)
        return refuse_rules(reader, "only one relabel_configs is read here");
    reader->has_head = true;
    return value.size == 0 || span_equal_text(value, "[]")
               ? ERR_NONE
               : refuse_rules(reader, "the rules are a list, each beginning with \"- \"");
}

static enum err_code read_key(struct reader *reader, struct span text, int indent)
{
    struct span key, value;
    if (!reader->rule)
        return read_head(reader, text);
    if (reader->key_indent == NO_LIST)
        reader->key_indent = indent;
    if (indent != reader->key_indent)
        return refuse_rules(reader, "the keys of a rule begin in one column");
    const enum err_code code = read_pair(reader, text, &key, &value);
    return code ? code : set_key(reader, key, value);
}

static bool is_dash(struct span text)
{
    return text.data[0] == '-' && (text.size == 1 || text.data[1] == ' ');
}

static enum err_code read_line(struct reader *reader, struct span text, int indent)
{
    if (!is_dash(text))
        return read_key(reader, text, indent);
    /* A list may begin in the column of its key: that of source_labels, and that of the rules. */
    if (reader->is_in_sources && indent >= reader->key_indent && indent > reader->list_indent)
        return add_source(reader, span_of(text.data + 1, text.size - 1));
    if (reader->list_indent == NO_LIST)
        reader->list_indent = indent;
    if (indent != reader->list_indent)
        return refuse_rules(reader, "the rules begin in one column");
    const enum err_code code = begin_rule(reader);
    size_t skipped = 1;
    while (skipped < text.size && text.data[skipped] == ' ')
        skipped++;
    const struct span rest = span_of(text.data + skipped, text.size - skipped);
    return code || rest.size == 0 ? code : read_key(reader, rest, indent + (int)skipped);
}

static enum err_code read_lines(struct reader *reader, struct span text)
{
    struct span rest = text, line;
    enum err_code code = ERR_NONE;
    while (!code && span_take_line(&rest, &line)) {
        reader->line++;
        size_t indent = 0;
        while (indent < line.size && line.data[indent] == ' ')
            indent++;
        const struct span shown =
            span_trim(without_comment(span_of(line.data + indent, line.size - indent)));
        if (indent < line.size && line.data[indent] == '\t')
            code = refuse_rules(reader, "YAML is indented by blanks, not by tabulators");
        else if (shown.size && !span_equal_text(shown, "---"))
            code = read_line(reader, shown, (int)indent);
    }
    return code ? code : end_rule(reader);
}

enum err_code relabel_read(struct span text, struct arena *arena, struct relabel_rules **ret_rules,
                           struct err *err)
{
    struct reader reader = {.arena = arena,
                            .err = err,
                            .rules = arena_new(arena, struct relabel_rules, 1),
                            .list_indent = NO_LIST,
                            .key_indent = NO_LIST};
    reader.end = &reader.rules->first;
    if (text.size > RELABEL_TEXT_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE, "rules have at most %d bytes", RELABEL_TEXT_MAX_BYTES);
    if (!span_is_utf8(text))
        return err_set(err, ERR_INVALID, "the rules are no UTF-8 text");
    const enum err_code code = read_lines(&reader, text);
    if (!code)
        *ret_rules = reader.rules;
    return code;
}
