#include "lib/regex/regex.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"
#include "lib/regex/regex_layout.h"
#include "lib/regex/regex_scan.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

/* CLOCK_EVERY: matches between two reads of the CPU clock, which is a system call. */
enum { CLOCK_EVERY = 64 };

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
    struct regex_states states;
    pcre2_match_data *match_data;
    pcre2_match_context *context;
    int64_t used_ns;
    int64_t most_ns;    /* CPU time of all matches */
    int64_t started_ns; /* CPU time of the thread when the clock was last read */
    uint32_t match_count;
    char *pattern;
};

/* ---- the subset ---- */

static enum err_code refuse_pattern(struct span pattern, size_t at, const char *problem,
                                    struct err *err)
{
    int shown = pattern.size > 120 ? 120 : (int)pattern.size;
    return err_set(err, ERR_INVALID, "the regular expression '%.*s' %s (at byte %zu)", shown,
                   (const char *)pattern.data, problem, at + 1);
}

static enum err_code check_subset(struct span pattern, struct regex_states *ret_states,
                                  struct err *err)
{
    struct regex_scan scanner = {.pattern = pattern};
    struct regex_layout layout;
    enum err_code code = ERR_NONE;
    if (pattern.size > REGEX_PATTERN_BYTES)
        return refuse_pattern(pattern, REGEX_PATTERN_BYTES, "is longer than 8192 bytes", err);
    const uint8_t *zero = pattern.size ? memchr(pattern.data, 0, pattern.size) : NULL;
    if (zero)
        return refuse_pattern(pattern, (size_t)(zero - pattern.data), "has a byte that is 0", err);
    if (!span_is_utf8(pattern))
        return err_set(err, ERR_INVALID, "a regular expression is not UTF-8 text");
    regex_layout_init(&layout, pattern.size);
    while (scanner.at < pattern.size && !code) {
        size_t start = scanner.at;
        if (regex_scan_next(&scanner))
            regex_layout_add(&layout, &scanner, start);
        else
            code = refuse_pattern(pattern, start, scanner.problem, err);
    }
    *ret_states = regex_layout_states(&layout);
    regex_layout_fini(&layout);
    return code;
}

/* ---- compiling and matching ---- */

static pcre2_code *compile_with(struct span pattern, uint32_t options, int *ret_number,
                                size_t *ret_offset)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pcre2_set_parens_nest_limit(context, REGEX_LAYOUT_NEST_MAX);
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
    struct regex_states states;
    enum err_code code = check_subset(pattern, &states, err);
    if (code)
        return code;
    struct regex *regex = mem_new(struct regex, 1);
    regex->most_ns = REGEX_CPU_MS * CLOCK_NS_PER_MS;
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
    return regex->used_ns > regex->most_ns;
}

/* ---- matching with the DFA ---- */

void regex_limit_cpu(struct regex *regex, uint32_t cpu_ms)
{
    regex->most_ns = cpu_ms * CLOCK_NS_PER_MS;
}

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
    struct regex_scan scanner = {.pattern = pattern};
    struct span atom = {0}; /* a single character or class that a repeat may follow */
    while (scanner.at < pattern.size) {
        const size_t start = scanner.at;
        const uint8_t byte = pattern.data[start];
        unsigned least, most;
        const bool is_repeat = byte == '*' || byte == '+' || byte == '?' ||
                               (byte == '{' && regex_scan_braces(&scanner, &least, &most));
        if (!regex_scan_next(&scanner)) /* the pattern was accepted before */
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
