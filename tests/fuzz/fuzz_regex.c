/* First line: the pattern; the rest: the subject, also split in two. */
#include "tests/fuzz/fuzz.h"

#include "lib/base/err.h"
#include "lib/regex/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span pattern, subject;
    struct regex *regex;
    struct err err;
    bool matches = false, matches_again = true;
    span_split(span_of(data, size), '\n', &pattern, &subject);
    enum err_code code = regex_create(pattern, &regex, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return 0;
    }
    code = regex_match(regex, subject, &matches, &err);
    fuzz_check(code == ERR_NONE || fuzz_is_refusal(code, &err));
    enum err_code again = regex_match(regex, subject, &matches_again, &err);
    if (code == ERR_NONE && again == ERR_NONE)
        fuzz_check(matches == matches_again);
    regex_destroy(regex);
    return 0;
}
