#include "lib/base/regex.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <pcre2.h>
#include <stdio.h>

/* CLOCK_EVERY: matches between two reads of the CPU clock, which is a system call. */
enum { CLOCK_EVERY = 64, REPEAT_MAX = 1000, NEST_MAX = 100 };

/* DFA_AFTER_STEPS: backtracking steps after which the DFA matcher takes over. WORKSPACE_*:
 * memory for its states. */
enum { DFA_AFTER_STEPS = 10000, WORKSPACE_WORDS = 4096, WORKSPACE_WORDS_MAX = 1 << 20 };

struct regex {
    pcre2_code *code;
    pcre2_code *dfa_code; /* compiled for the DFA matcher; NULL until it is needed */
    int *dfa_workspace;
    size_t dfa_workspace_words;
    bool has_dfa_fallback;
    bool is_whole;
    uint32_t group_count;
    struct states {
        uint32_t mean, most;
    } states; /* see regex_states */
    pcre2_match_data *match_data;
    pcre2_match_context *context;
    int64_t used_ns;
    int64_t started_ns; /* CPU time of the thread when the clock was last read */
    uint32_t match_count;
    char *pattern;
};

/* ---- checking that the pattern is in the subset ---- */

struct scanner {
    struct span pattern;
    size_t at;
    bool has_atom; /* the previous item can be repeated */
    const char *problem;
};

static uint8_t peek(const struct scanner *scanner, size_t ahead)
{
    size_t at = scanner->at + ahead;
    return at < scanner->pattern.size ? scanner->pattern.data[at] : 0;
}

static bool refuse(struct scanner *scanner, const char *problem)
{
    scanner->problem = problem;
    return false;
}

/* At a backslash. */
static bool scan_escape(struct scanner *scanner)
{
    if (scanner->at + 1 >= scanner->pattern.size)
        return refuse(scanner, "ends in a single backslash");
    uint8_t letter = peek(scanner, 1);
    if (letter >= '0' && letter <= '9')
        return refuse(scanner, "uses a backreference or an octal number, which are not supported");
    if (letter == 'x') {
        if (!isxdigit(peek(scanner, 2)) || !isxdigit(peek(scanner, 3)))
            return refuse(scanner, "needs two hexadecimal digits behind \\x");
        scanner->at += 4;
        return true;
    }
    if (letter >= 0x80 || (isalpha(letter) && !strchr("dDwWsSbBtnrf", letter)))
        return refuse(scanner, "uses an escape that is not supported here");
    scanner->at += 2;
    return true;
}

/* At "[". */
static bool scan_class(struct scanner *scanner)
{
    scanner->at += peek(scanner, 1) == '^' ? 2 : 1;
    if (peek(scanner, 0) == ']')
        return refuse(scanner, "has an empty class; write \\] for the bracket itself");
    while (scanner->at < scanner->pattern.size && peek(scanner, 0) != ']') {
        uint8_t byte = peek(scanner, 0), next = peek(scanner, 1);
        if (byte == '[' && (next == ':' || next == '.' || next == '='))
            return refuse(scanner, "uses a named class such as [:alpha:]; write [A-Za-z]");
        if (byte == '\\' && (next == 'b' || next == 'B'))
            return refuse(scanner, "uses \\b inside a class");
        if (byte != '\\')
            scanner->at++;
        else if (!scan_escape(scanner))
            return false;
    }
    if (scanner->at >= scanner->pattern.size)
        return refuse(scanner, "has a class without its closing bracket");
    scanner->at++;
    scanner->has_atom = true;
    return true;
}

/* At "(". */
static bool scan_group(struct scanner *scanner)
{
    scanner->has_atom = false;
    if (peek(scanner, 1) == '*')
        return refuse(scanner, "uses a verb such as (*ACCEPT), which is not supported");
    if (peek(scanner, 1) != '?') {
        scanner->at++;
        return true;
    }
    if (peek(scanner, 2) == ':') {
        scanner->at += 3;
        return true;
    }
    if (scanner->at == 0 && peek(scanner, 2) == 'i' && peek(scanner, 3) == ')') {
        scanner->at += 4;
        return true;
    }
    if (peek(scanner, 2) == 'i' && peek(scanner, 3) == ')')
        return refuse(scanner, "has (?i) in the middle; it is allowed only at the very beginning");
    return refuse(scanner, "uses look-around or another (?…) group that is not supported; "
                           "only (?:…) is");
}

enum { MANY = INT_MAX }; /* the most repeats of *, + and {2,} */

static bool read_count(const struct scanner *scanner, size_t *at, unsigned *ret_count)
{
    size_t start = *at;
    unsigned count = 0;
    while (*at < scanner->pattern.size && isdigit(scanner->pattern.data[*at]) && *at - start < 5)
        count = count * 10 + (unsigned)(scanner->pattern.data[(*at)++] - '0');
    *ret_count = count;
    return *at > start;
}

/*
 * At "{": returns the end of the repeat {2}, {2,} or {2,5}; *ret_most is MANY for {2,}. Returns 0
 * when it is not a repeat; then the brace is literal, as in {{closure}}.
 */
static size_t braces_end(const struct scanner *scanner, unsigned *ret_least, unsigned *ret_most)
{
    size_t at = scanner->at + 1;
    if (!read_count(scanner, &at, ret_least))
        return 0;
    *ret_most = *ret_least;
    if (at < scanner->pattern.size && scanner->pattern.data[at] == ',') {
        at++;
        if (!read_count(scanner, &at, ret_most))
            *ret_most = MANY;
    }
    return at < scanner->pattern.size && scanner->pattern.data[at] == '}' ? at + 1 : 0;
}

static bool scan_braces(struct scanner *scanner)
{
    unsigned least, most;
    size_t end = braces_end(scanner, &least, &most);
    if (least > REPEAT_MAX || (most > REPEAT_MAX && most != MANY))
        return refuse(scanner, "repeats more than 1000 times");
    scanner->at = end;
    return true;
}

/* At one of * + ? {. */
static bool scan_repeat(struct scanner *scanner)
{
    if (!scanner->has_atom)
        return refuse(scanner, "has a repeat with nothing before it to repeat");
    if (peek(scanner, 0) != '{')
        scanner->at++;
    else if (!scan_braces(scanner))
        return false;
    if (peek(scanner, 0) == '+')
        return refuse(scanner, "uses a possessive repeat such as a*+, which is not supported");
    if (peek(scanner, 0) == '?')
        scanner->at++;
    scanner->has_atom = false;
    return true;
}

static bool scan_literal(struct scanner *scanner)
{
    scanner->has_atom = true;
    scanner->at++;
    return true;
}

static bool scan_one(struct scanner *scanner)
{
    unsigned least, most;
    switch (peek(scanner, 0)) {
    case '\\':
        scanner->has_atom = peek(scanner, 1) != 'b' && peek(scanner, 1) != 'B';
        return scan_escape(scanner);
    case '[':
        return scan_class(scanner);
    case '(':
        return scan_group(scanner);
    case '*':
    case '+':
    case '?':
        return scan_repeat(scanner);
    case '{':
        if (peek(scanner, 1) == ',')
            return refuse(scanner, "has {,n}, which is read differently elsewhere; write {0,n}");
        return braces_end(scanner, &least, &most) ? scan_repeat(scanner) : scan_literal(scanner);
    case '^':
    case '$':
    case '|':
        scanner->has_atom = false;
        scanner->at++;
        return true;
    default:
        return scan_literal(scanner);
    }
}

/* ---- how many states can be active at once ---- */

/*
 * The DFA matcher keeps one state for each item of the pattern that may be next at a position of
 * the subject. An item can only be next after as many characters as the items before it match:
 * after 0 to 2 for "b" in "a{0,2}b", and after any number from 3 on for "d" in "abc.*d". So each
 * item has a range of positions, alternatives have the same range, and the items whose ranges
 * contain a position can be active there together. A repeat widens the ranges of what it repeats;
 * {n,m} also makes m copies of it. Copies that begin at one position each are active one after the
 * other.
 */
struct item {
    uint32_t first; /* characters before it: at least, … */
    uint32_t last;  /* … and at most */
    uint32_t copies;
    uint32_t most_copies; /* if what contains it can begin at many positions */
};

/* Lengths of a subject, in characters. */
struct extent {
    uint32_t least, most; /* POSITIONS_MAX: any number */
};

struct group {
    size_t first_item;
    struct extent begin; /* before the group */
    struct extent ends;  /* after the alternatives so far; least POSITIONS_MAX: none */
};

struct layout {
    struct item *items;
    size_t count;
    struct extent at; /* after the items so far of the alternative */
    struct group groups[NEST_MAX + 1];
    size_t depth;
    size_t last_item;         /* where the item begins that a repeat would apply to, … */
    struct extent last_begin; /* … and the extent before it */
};

/* The positions that are counted: the mean is that of the first, the most that of all. */
enum { MEAN_POSITIONS = REGEX_MEAN_BYTES, POSITIONS = 1 << 15, POSITIONS_MAX = 1 << 24 };

static uint32_t limit(uint64_t number)
{
    return number > POSITIONS_MAX ? POSITIONS_MAX : (uint32_t)number;
}

static struct extent extent_plus(struct extent extent, uint64_t least, uint64_t most)
{
    return (struct extent){limit(extent.least + least), limit(extent.most + most)};
}

static void end_alternative(struct layout *layout)
{
    struct extent *ends = &layout->groups[layout->depth].ends;
    if (layout->at.least < ends->least)
        ends->least = layout->at.least;
    if (layout->at.most > ends->most)
        ends->most = layout->at.most;
}

static void begin_group(struct layout *layout)
{
    layout->groups[++layout->depth] = (struct group){
        .first_item = layout->count, .begin = layout->at, .ends = {.least = POSITIONS_MAX}};
    layout->items[layout->count++] = (struct item){layout->at.least, layout->at.most, 1, 1};
}

static void end_group(struct layout *layout)
{
    const struct group *group = &layout->groups[layout->depth];
    end_alternative(layout);
    layout->at = group->ends;
    layout->last_item = group->first_item;
    layout->last_begin = group->begin;
    layout->depth--;
}

static void add_item(struct layout *layout)
{
    layout->last_item = layout->count;
    layout->last_begin = layout->at;
    layout->items[layout->count++] = (struct item){layout->at.least, layout->at.most, 1, 1};
    layout->at = extent_plus(layout->at, 1, 1);
}

/* The copies that can be active together. Those of a fixed length that begin at few positions are
 * active one after the other. */
static uint32_t copies_together(const struct layout *layout, struct extent length, uint32_t repeats)
{
    const uint64_t begins = (uint64_t)layout->last_begin.most - layout->last_begin.least;
    if (length.least != length.most || length.least == 0 || begins / length.least >= repeats)
        return repeats;
    return (uint32_t)(begins / length.least) + 1;
}

/* Repeats the last item or group least to most times; MANY is a loop after the least copies. */
static void repeat_last(struct layout *layout, uint32_t least, uint32_t most)
{
    const struct extent begin = layout->last_begin;
    const struct extent length = {layout->at.least - begin.least, layout->at.most - begin.most};
    const bool is_loop = most == MANY;
    const uint32_t repeats = is_loop ? (least ? least : 1) : most;
    const uint32_t together = copies_together(layout, length, repeats);
    const bool is_at_one_position = length.least == length.most && begin.least == begin.most;
    const uint64_t widened = is_loop       ? POSITIONS_MAX
                             : repeats > 1 ? (uint64_t)length.most * (repeats - 1)
                                           : 0;
    for (size_t i = layout->last_item; i < layout->count; i++) {
        struct item *item = &layout->items[i];
        if (!is_at_one_position)
            item->copies = limit((uint64_t)item->most_copies * together);
        item->most_copies = limit((uint64_t)item->most_copies * repeats);
        item->last = limit(item->last + widened);
    }
    layout->at = extent_plus(begin, (uint64_t)length.least * least,
                             is_loop ? POSITIONS_MAX : (uint64_t)length.most * most);
}

static void next_alternative(struct layout *layout)
{
    end_alternative(layout);
    layout->at = layout->groups[layout->depth].begin;
}

/* Whether the item that was accepted last, which begins with byte, matches one character: no
 * assertion, and no more than the first byte of a character outside ASCII. */
static bool is_character(const struct scanner *scanner, uint8_t byte)
{
    if (byte == '\\')
        return scanner->has_atom; /* not for \b */
    return byte != '^' && byte != '$' && byte != ')' && (byte & 0xc0) != 0x80;
}

/* Adds the accepted item that began at start. */
static void lay_out(struct layout *layout, const struct scanner *scanner, size_t start)
{
    struct scanner item = *scanner;
    item.at = start;
    const uint8_t byte = peek(&item, 0);
    unsigned least, most;
    if (byte == '*' || byte == '+')
        repeat_last(layout, byte == '+', MANY);
    else if (byte == '?')
        repeat_last(layout, 0, 1);
    else if (byte == '{' && braces_end(&item, &least, &most))
        repeat_last(layout, least, most);
    else if (byte == '(' && scanner->pattern.data[scanner->at - 1] == ')') /* (?i) */
        return;
    else if (byte == '(' && layout->depth < NEST_MAX) /* deeper ones are refused later */
        begin_group(layout);
    else if (byte == ')' && layout->depth)
        end_group(layout);
    else if (byte == '|')
        next_alternative(layout);
    else if (is_character(scanner, byte))
        add_item(layout);
}

/* The items that can be active at each position. The matcher's time is proportional to the sum of
 * their squares, so the mean is the root of the mean square. */
static struct states count_states(const struct layout *layout)
{
    double *change = mem_new(double, POSITIONS + 1);
    double active = 0, squares = 0, most = 0;
    for (size_t i = 0; i < layout->count; i++) {
        const struct item *item = &layout->items[i];
        if (item->first >= POSITIONS)
            continue;
        change[item->first] += item->copies;
        change[item->last < POSITIONS ? item->last + 1 : POSITIONS] -= item->copies;
    }
    for (size_t position = 0; position < POSITIONS; position++) {
        active += change[position];
        squares += position < MEAN_POSITIONS ? active * active : 0;
        most = active > most ? active : most;
    }
    mem_free(change);
    return (struct states){limit((uint64_t)lround(sqrt(squares / MEAN_POSITIONS))),
                           limit((uint64_t)most)};
}

/* ---- the subset ---- */

static enum err_code refuse_pattern(struct span pattern, size_t at, const char *problem,
                                    struct err *err)
{
    int shown = pattern.size > 120 ? 120 : (int)pattern.size;
    return err_set(err, ERR_INVALID, "the regular expression '%.*s' %s (at byte %zu)", shown,
                   (const char *)pattern.data, problem, at + 1);
}

static enum err_code check_subset(struct span pattern, struct states *ret_states, struct err *err)
{
    struct scanner scanner = {.pattern = pattern};
    struct layout layout = {.groups = {{.ends = {.least = POSITIONS_MAX}}}};
    enum err_code code = ERR_NONE;
    if (pattern.size > REGEX_PATTERN_BYTES)
        return refuse_pattern(pattern, REGEX_PATTERN_BYTES, "is longer than 8192 bytes", err);
    const uint8_t *zero = pattern.size ? memchr(pattern.data, 0, pattern.size) : NULL;
    if (zero)
        return refuse_pattern(pattern, (size_t)(zero - pattern.data), "has a byte that is 0", err);
    if (!span_is_utf8(pattern))
        return err_set(err, ERR_INVALID, "a regular expression is not UTF-8 text");
    layout.items = mem_new(struct item, pattern.size + 1);
    while (scanner.at < pattern.size && !code) {
        size_t start = scanner.at;
        if (scan_one(&scanner))
            lay_out(&layout, &scanner, start);
        else
            code = refuse_pattern(pattern, start, scanner.problem, err);
    }
    *ret_states = count_states(&layout);
    mem_free(layout.items);
    return code;
}

/* ---- compiling and matching ---- */

static pcre2_code *compile_with(struct span pattern, uint32_t options, int *ret_number,
                                size_t *ret_offset)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pcre2_set_parens_nest_limit(context, NEST_MAX);
    }
    options |= PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    pcre2_code *code =
        pcre2_compile(pattern.data, pattern.size, options, ret_number, ret_offset, context);
    pcre2_compile_context_free(context);
    return code;
}

static enum err_code compile_regex(struct regex *regex, struct span pattern, struct err *err)
{
    int number;
    size_t offset;
    /* Subjects come from outside: invalid UTF-8 in a subject must not match by accident. */
    const uint32_t options =
        regex->is_whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL : PCRE2_NO_AUTO_CAPTURE;
    regex->code = compile_with(pattern, PCRE2_MATCH_INVALID_UTF | options, &number, &offset);
    if (!regex->code) {
        char message[160] = "";
        pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof(message));
        char problem[200];
        snprintf(problem, sizeof(problem), "is wrong: %s", message);
        return refuse_pattern(pattern, offset, problem, err);
    }
    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &regex->group_count);
    if (regex->group_count >= REGEX_GROUPS_MAX)
        return refuse_pattern(pattern, pattern.size, "has too many groups", err);
    regex->match_data = pcre2_match_data_create(regex->group_count + 1, NULL);
    regex->context = pcre2_match_context_create(NULL);
    if (!regex->match_data || !regex->context)
        return err_set(err, ERR_INTERNAL, "no memory for a regular expression");
    pcre2_set_match_limit(regex->context, REGEX_MATCH_STEPS);
    pcre2_set_heap_limit(regex->context, REGEX_HEAP_KIB);
    return ERR_NONE;
}

static enum err_code create_regex(struct span pattern, bool is_whole, struct regex **ret_regex,
                                  struct err *err)
{
    struct states states;
    enum err_code code = check_subset(pattern, &states, err);
    if (code)
        return code;
    struct regex *regex = mem_new(struct regex, 1);
    regex->states = states;
    regex->is_whole = is_whole;
    regex->pattern = mem_new(char, pattern.size + 1);
    if (pattern.size)
        memcpy(regex->pattern, pattern.data, pattern.size);
    code = compile_regex(regex, pattern, err);
    if (code)
        regex_destroy(regex);
    else
        *ret_regex = regex;
    return code;
}

enum err_code regex_create(struct span pattern, struct regex **ret_regex, struct err *err)
{
    return create_regex(pattern, false, ret_regex, err);
}

enum err_code regex_create_whole(struct span pattern, struct regex **ret_regex, struct err *err)
{
    return create_regex(pattern, true, ret_regex, err);
}

void regex_destroy(struct regex *regex)
{
    if (!regex)
        return;
    pcre2_match_context_free(regex->context);
    pcre2_match_data_free(regex->match_data);
    pcre2_code_free(regex->code);
    pcre2_code_free(regex->dfa_code);
    mem_free(regex->dfa_workspace);
    mem_free(regex->pattern);
    mem_free(regex);
}

static enum err_code too_costly(const struct regex *regex, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "the regular expression '%.120s' takes too long; repeat less inside repeats",
                   regex->pattern);
}

/* The steps of each match are limited, so little time can pass between two reads of the clock. */
static bool is_over_budget(struct regex *regex)
{
    if (regex->match_count++ % CLOCK_EVERY == 0)
        regex->started_ns = clock_thread_cpu_ns();
    else if (regex->match_count % CLOCK_EVERY == 0)
        regex->used_ns += clock_thread_cpu_ns() - regex->started_ns;
    return regex->used_ns > REGEX_CPU_MS * CLOCK_NS_PER_MS;
}

/* ---- matching with the DFA ---- */

void regex_use_dfa_fallback(struct regex *regex)
{
    regex->has_dfa_fallback = true;
    pcre2_set_match_limit(regex->context, DFA_AFTER_STEPS);
}

uint32_t regex_states(const struct regex *regex, size_t subject_bytes)
{
    return subject_bytes <= REGEX_MEAN_BYTES ? regex->states.mean : regex->states.most;
}

static bool grow_dfa_workspace(struct regex *regex)
{
    if (regex->dfa_workspace_words >= WORKSPACE_WORDS_MAX)
        return false;
    regex->dfa_workspace_words =
        regex->dfa_workspace_words ? regex->dfa_workspace_words * 4 : WORKSPACE_WORDS;
    regex->dfa_workspace =
        mem_resize(regex->dfa_workspace, regex->dfa_workspace_words, sizeof(*regex->dfa_workspace));
    return true;
}

/* Whether the repeat is "+" or "{2,}". *ret_least is "{2", or empty for "+". */
static bool is_endless(struct span repeat, struct span *ret_least)
{
    *ret_least = span_of(repeat.data, 0);
    if (repeat.data[0] == '+')
        return true;
    const uint8_t *comma = memchr(repeat.data, ',', repeat.size);
    if (repeat.data[0] != '{' || !comma || comma[1] != '}')
        return false;
    *ret_least = span_of(repeat.data, (size_t)(comma - repeat.data));
    return true;
}

/* Writes the repeat after atom, without a repeat that PCRE2 counts (see write_dfa_pattern). */
static void write_repeat(struct span atom, struct span repeat, struct buf *text)
{
    struct span least;
    if (!atom.size || !is_endless(repeat, &least)) {
        buf_append_span(text, repeat);
        return;
    }
    if (least.size) {
        buf_append_span(text, least);
        buf_append_byte(text, '}');
    }
    buf_append_span(text, atom);
    buf_append_byte(text, '*');
}

/*
 * Rewrites the pattern for the DFA matcher. For "+" and "{2,}" after a single character or class,
 * PCRE2 counts the repetitions, and every count is a state of its own: a subject of n characters
 * then has n states, which are all compared with each other for each character. For "*" it does not
 * count. So x+ becomes xx*, and x{2,} becomes x{2}x*. Groups are repeated without counting and stay
 * as they are.
 */
static void write_dfa_pattern(struct span pattern, struct buf *text)
{
    struct scanner scanner = {.pattern = pattern};
    struct span atom = {0}; /* a single character or class that a repeat may follow */
    while (scanner.at < pattern.size) {
        const size_t start = scanner.at;
        const uint8_t byte = pattern.data[start];
        unsigned least, most;
        const bool is_repeat = byte == '*' || byte == '+' || byte == '?' ||
                               (byte == '{' && braces_end(&scanner, &least, &most));
        if (!scan_one(&scanner)) /* the pattern was accepted before */
            return;
        const struct span piece = span_of(pattern.data + start, scanner.at - start);
        if (is_repeat) {
            write_repeat(atom, piece, text);
            atom = (struct span){0};
            continue;
        }
        buf_append_span(text, piece);
        if ((byte & 0xc0) == 0x80) /* a continuation byte of the atom's character */
            atom.size += piece.size;
        else
            atom = scanner.has_atom && byte != ')' ? piece : (struct span){0};
    }
}

static pcre2_code *compile_dfa(const char *pattern)
{
    enum { WRITTEN_FACTOR = 4 };
    int number;
    size_t offset;
    buf_auto text;
    buf_init(&text, REGEX_PATTERN_BYTES * WRITTEN_FACTOR);
    write_dfa_pattern(span_text(pattern), &text);
    return buf_failed(&text)
               ? NULL
               : compile_with(buf_span(&text), PCRE2_NO_AUTO_POSSESS | PCRE2_NO_AUTO_CAPTURE,
                              &number, &offset);
}

/* Runs PCRE2's DFA matcher, which passes over the subject once with the set of all states, and
 * enlarges its workspace as needed. */
static int match_dfa(struct regex *regex, struct span text, uint32_t options)
{
    int result = PCRE2_ERROR_DFA_WSSIZE;
    while (result == PCRE2_ERROR_DFA_WSSIZE &&
           (regex->dfa_workspace_words || grow_dfa_workspace(regex))) {
        result = pcre2_dfa_match(regex->dfa_code, text.data, text.size, 0,
                                 options | PCRE2_DFA_SHORTEST, regex->match_data, regex->context,
                                 regex->dfa_workspace, regex->dfa_workspace_words);
        if (result == PCRE2_ERROR_DFA_WSSIZE && !grow_dfa_workspace(regex))
            break;
    }
    return result;
}

/* The DFA matcher accepts only valid UTF-8, so the parts between invalid bytes are matched one
 * by one. A part that is not the first or last does not match "^" or "$". */
static int match_dfa_parts(struct regex *regex, struct span text)
{
    uint32_t options = 0;
    if (!regex->dfa_code)
        regex->dfa_code = compile_dfa(regex->pattern);
    if (!regex->dfa_code)
        return PCRE2_ERROR_INTERNAL;
    for (;;) {
        int result = match_dfa(regex, text, options);
        if (result > PCRE2_ERROR_UTF8_ERR1 || result < PCRE2_ERROR_UTF8_ERR21)
            return result;
        const size_t valid = pcre2_get_startchar(regex->match_data);
        result = match_dfa(regex, span_of(text.data, valid), options | PCRE2_NOTEOL);
        if (result != PCRE2_ERROR_NOMATCH)
            return result;
        text = span_of(text.data + valid + 1, text.size - valid - 1);
        options = PCRE2_NOTBOL;
    }
}

enum err_code regex_match(struct regex *regex, struct span subject, bool *ret_matches,
                          struct err *err)
{
    if (!regex->has_dfa_fallback && !regex->is_whole && is_over_budget(regex))
        return too_costly(regex, err);
    if (!subject.size)
        subject = SPAN_LITERAL("");
    int result = pcre2_match(regex->code, subject.data, subject.size, 0, 0, regex->match_data,
                             regex->context);
    if (result < 0 && result != PCRE2_ERROR_NOMATCH && regex->has_dfa_fallback)
        result = match_dfa_parts(regex, subject);
    if (result < 0 && result != PCRE2_ERROR_NOMATCH)
        return too_costly(regex, err);
    *ret_matches = result >= 0;
    return ERR_NONE;
}

enum err_code regex_match_groups(struct regex *regex, struct span subject,
                                 struct span groups[REGEX_GROUPS_MAX], uint32_t *ret_count,
                                 struct err *err)
{
    bool is_match;
    const enum err_code code = regex_match(regex, subject, &is_match, err);
    *ret_count = 0;
    if (code || !is_match)
        return code;
    const size_t *positions = pcre2_get_ovector_pointer(regex->match_data);
    const uint32_t count = pcre2_get_ovector_count(regex->match_data);
    for (uint32_t i = 0; i < count && i < REGEX_GROUPS_MAX; i++) {
        const size_t start = positions[2 * i], end = positions[2 * i + 1];
        groups[i] =
            start == PCRE2_UNSET ? (struct span){0} : span_of(subject.data + start, end - start);
        *ret_count = i + 1;
    }
    return ERR_NONE;
}
