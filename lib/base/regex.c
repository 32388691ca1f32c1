#include "lib/base/regex.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>

/* CLOCK_EVERY: matches between two reads of the CPU clock, which is a system call. */
enum { CLOCK_EVERY = 64, REPEAT_MAX = 1000, NEST_MAX = 100, WEIGHT_MAX = 1 << 24 };

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
    uint32_t repeated; /* see regex_repeated_states */
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
    uint32_t weights[NEST_MAX + 1]; /* states in each open group, with its repeats written out */
    size_t depth;
    uint32_t last;    /* states of the item that a repeat would apply to */
    uint32_t counted; /* those of them that are in repeated */
    uint32_t repeated;
    uint32_t repeated_before[NEST_MAX + 1]; /* at the begin of each open group */
    bool is_spread; /* items after a repeat begin at any place of the subject, all at once */
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
        return refuse(scanner, "has (?i) in the middle; it may stand at the very beginning only");
    return refuse(scanner, "uses look-around or another (?…) group that is not supported; "
                           "only (?:…) is");
}

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
 * At "{": returns the end of the repeat {2}, {2,} or {2,5}. Returns 0 when it is not a repeat; then
 * the brace is literal, as in {{closure}}.
 */
static size_t braces_end(const struct scanner *scanner, unsigned *ret_most)
{
    size_t at = scanner->at + 1;
    unsigned least;
    if (!read_count(scanner, &at, &least))
        return 0;
    *ret_most = least;
    if (at < scanner->pattern.size && scanner->pattern.data[at] == ',') {
        at++;
        unsigned most;
        if (read_count(scanner, &at, &most) && most > least)
            *ret_most = most;
    }
    return at < scanner->pattern.size && scanner->pattern.data[at] == '}' ? at + 1 : 0;
}

static bool scan_braces(struct scanner *scanner)
{
    unsigned most;
    size_t end = braces_end(scanner, &most);
    if (most > REPEAT_MAX)
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
    unsigned most;
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
        return braces_end(scanner, &most) ? scan_repeat(scanner) : scan_literal(scanner);
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

static enum err_code refuse_pattern(struct span pattern, size_t at, const char *problem,
                                    struct err *err)
{
    int shown = pattern.size > 120 ? 120 : (int)pattern.size;
    return err_set(err, ERR_INVALID, "the regular expression '%.*s' %s (at byte %zu)", shown,
                   (const char *)pattern.data, problem, at + 1);
}

static uint32_t limit_weight(uint64_t weight)
{
    return weight > WEIGHT_MAX ? WEIGHT_MAX : (uint32_t)weight;
}

static void add_weight(struct scanner *scanner, uint64_t weight)
{
    uint32_t *sum = &scanner->weights[scanner->depth];
    *sum = limit_weight(*sum + weight);
}

static void add_repeated(struct scanner *scanner, uint64_t states)
{
    const uint64_t more = states > scanner->counted ? states - scanner->counted : 0;
    scanner->repeated = limit_weight(scanner->repeated + more);
}

/* Adds the states of the accepted item that began at start. Groups nested deeper than NEST_MAX
 * are refused later. In ".*(abc|abd)" all states of the group can be active at once: one for each
 * place where ".*" may end. */
static void add_item_weight(struct scanner *scanner, size_t start)
{
    struct scanner before = *scanner;
    before.at = start;
    const uint8_t byte = peek(&before, 0);
    unsigned most;
    if (byte == '*' || byte == '+' || byte == '?') {
        add_repeated(scanner, scanner->last);
        scanner->is_spread |= byte != '?';
        return;
    }
    if (byte == '{' && braces_end(&before, &most)) {
        const uint64_t more = most ? (uint64_t)scanner->last * most : 0;
        add_repeated(scanner, more);
        add_weight(scanner, more);
        scanner->is_spread = true;
        return;
    }
    scanner->last = 1;
    scanner->counted = 0;
    if (byte == '(' && scanner->depth < NEST_MAX) {
        scanner->weights[++scanner->depth] = 0;
        scanner->repeated_before[scanner->depth] = scanner->repeated;
    } else if (byte == ')' && scanner->depth) {
        scanner->counted = scanner->repeated - scanner->repeated_before[scanner->depth];
        scanner->last = limit_weight(scanner->weights[scanner->depth--] + UINT64_C(1));
        add_weight(scanner, scanner->last);
    } else {
        add_weight(scanner, 1);
        add_repeated(scanner, scanner->is_spread);
        scanner->counted = scanner->is_spread;
    }
}

static enum err_code check_subset(struct span pattern, uint32_t *ret_repeated, struct err *err)
{
    struct scanner scanner = {.pattern = pattern};
    if (pattern.size > REGEX_PATTERN_BYTES)
        return refuse_pattern(pattern, REGEX_PATTERN_BYTES, "is longer than 8192 bytes", err);
    const uint8_t *zero = pattern.size ? memchr(pattern.data, 0, pattern.size) : NULL;
    if (zero)
        return refuse_pattern(pattern, (size_t)(zero - pattern.data), "has a byte that is 0", err);
    if (!span_is_utf8(pattern))
        return err_set(err, ERR_INVALID, "a regular expression is not UTF-8 text");
    while (scanner.at < pattern.size) {
        size_t start = scanner.at;
        if (!scan_one(&scanner))
            return refuse_pattern(pattern, start, scanner.problem, err);
        add_item_weight(&scanner, start);
    }
    *ret_repeated = scanner.repeated;
    return ERR_NONE;
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
    uint32_t repeated;
    enum err_code code = check_subset(pattern, &repeated, err);
    if (code)
        return code;
    struct regex *regex = mem_new(struct regex, 1);
    regex->repeated = repeated;
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

uint32_t regex_repeated_states(const struct regex *regex)
{
    return regex->repeated;
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
        unsigned most;
        const bool is_repeat = byte == '*' || byte == '+' || byte == '?' ||
                               (byte == '{' && braces_end(&scanner, &most));
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
    const size_t *places = pcre2_get_ovector_pointer(regex->match_data);
    const uint32_t count = pcre2_get_ovector_count(regex->match_data);
    for (uint32_t i = 0; i < count && i < REGEX_GROUPS_MAX; i++) {
        const size_t start = places[2 * i], end = places[2 * i + 1];
        groups[i] =
            start == PCRE2_UNSET ? (struct span){0} : span_of(subject.data + start, end - start);
        *ret_count = i + 1;
    }
    return ERR_NONE;
}
