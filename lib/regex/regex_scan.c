#include "lib/regex/regex_scan.h"

#include <ctype.h>
#include <string.h>

enum { REPEAT_MAX = 1000 };

static bool refuse(struct regex_scan *scanner, const char *problem)
{
    scanner->problem = problem;
    return false;
}

/* At a backslash. */
static bool scan_escape(struct regex_scan *scanner)
{
    if (scanner->at + 1 >= scanner->pattern.size)
        return refuse(scanner, "ends in a single backslash");
    uint8_t letter = regex_scan_peek(scanner, 1);
    if (letter >= '0' && letter <= '9')
        return refuse(scanner, "uses a backreference or an octal number, which are not supported");
    if (letter == 'x') {
        if (!isxdigit(regex_scan_peek(scanner, 2)) || !isxdigit(regex_scan_peek(scanner, 3)))
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
static bool scan_class(struct regex_scan *scanner)
{
    scanner->at += regex_scan_peek(scanner, 1) == '^' ? 2 : 1;
    if (regex_scan_peek(scanner, 0) == ']')
        return refuse(scanner, "has an empty class; write \\] for the bracket itself");
    while (scanner->at < scanner->pattern.size && regex_scan_peek(scanner, 0) != ']') {
        uint8_t byte = regex_scan_peek(scanner, 0), next = regex_scan_peek(scanner, 1);
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
static bool scan_group(struct regex_scan *scanner)
{
    scanner->has_atom = false;
    if (regex_scan_peek(scanner, 1) == '*')
        return refuse(scanner, "uses a verb such as (*ACCEPT), which is not supported");
    if (regex_scan_peek(scanner, 1) != '?') {
        scanner->at++;
        return true;
    }
    if (regex_scan_peek(scanner, 2) == ':') {
        scanner->at += 3;
        return true;
    }
    if (scanner->at == 0 && regex_scan_peek(scanner, 2) == 'i' &&
        regex_scan_peek(scanner, 3) == ')') {
        scanner->at += 4;
        return true;
    }
    if (regex_scan_peek(scanner, 2) == 'i' && regex_scan_peek(scanner, 3) == ')')
        return refuse(scanner, "has (?i) in the middle; it is allowed only at the very beginning");
    return refuse(scanner, "uses look-around or another (?…) group that is not supported; "
                           "only (?:…) is");
}

static bool read_count(const struct regex_scan *scanner, size_t *at, unsigned *ret_count)
{
    size_t start = *at;
    unsigned count = 0;
    while (*at < scanner->pattern.size && isdigit(scanner->pattern.data[*at]) && *at - start < 5)
        count = count * 10 + (unsigned)(scanner->pattern.data[(*at)++] - '0');
    *ret_count = count;
    return *at > start;
}

size_t regex_scan_braces(const struct regex_scan *scanner, unsigned *ret_least, unsigned *ret_most)
{
    size_t at = scanner->at + 1;
    if (!read_count(scanner, &at, ret_least))
        return 0;
    *ret_most = *ret_least;
    if (at < scanner->pattern.size && scanner->pattern.data[at] == ',') {
        at++;
        if (!read_count(scanner, &at, ret_most))
            *ret_most = REGEX_SCAN_MANY;
    }
    return at < scanner->pattern.size && scanner->pattern.data[at] == '}' ? at + 1 : 0;
}

static bool scan_braces(struct regex_scan *scanner)
{
    unsigned least, most;
    size_t end = regex_scan_braces(scanner, &least, &most);
    if (least > REPEAT_MAX || (most > REPEAT_MAX && most != REGEX_SCAN_MANY))
        return refuse(scanner, "repeats more than 1000 times");
    scanner->at = end;
    return true;
}

/* At one of * + ? {. */
static bool scan_repeat(struct regex_scan *scanner)
{
    if (!scanner->has_atom)
        return refuse(scanner, "has a repeat with nothing before it to repeat");
    if (regex_scan_peek(scanner, 0) != '{')
        scanner->at++;
    else if (!scan_braces(scanner))
        return false;
    if (regex_scan_peek(scanner, 0) == '+')
        return refuse(scanner, "uses a possessive repeat such as a*+, which is not supported");
    if (regex_scan_peek(scanner, 0) == '?')
        scanner->at++;
    scanner->has_atom = false;
    return true;
}

static bool scan_literal(struct regex_scan *scanner)
{
    scanner->has_atom = true;
    scanner->at++;
    return true;
}

bool regex_scan_next(struct regex_scan *scanner)
{
    unsigned least, most;
    switch (regex_scan_peek(scanner, 0)) {
    case '\\':
        scanner->has_atom =
            regex_scan_peek(scanner, 1) != 'b' && regex_scan_peek(scanner, 1) != 'B';
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
        if (regex_scan_peek(scanner, 1) == ',')
            return refuse(scanner, "has {,n}, which is read differently elsewhere; write {0,n}");
        return regex_scan_braces(scanner, &least, &most) ? scan_repeat(scanner)
                                                         : scan_literal(scanner);
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
