/*
 * short_name: progressively shorter forms of a function's name, for boxes that are too narrow for
 * the whole name.
 *
 * The forms drop the path of the package; then arguments, including those of types, and text that
 * compilers add; then packages or name spaces. Go, C++, Rust and Java are distinguished by their
 * syntax. The page uses the same rules (web/src/model/text/names.ts); tests/short_names.txt tests
 * both. Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_SHORT_NAME_H
#define LIB_PROFILE_PICTURE_SHORT_NAME_H

#include "lib/base/span.h"

enum { SHORT_NAME_FORMS = 8, SHORT_NAME_BYTES = 4096 };

struct short_name {
    /* the whole name first, each shorter than the previous one */
    struct span forms[SHORT_NAME_FORMS];
    size_t count;                /* at least 1 */
    char text[SHORT_NAME_BYTES]; /* memory of some of the forms */
};

/* Makes the forms of name, which are valid as long as name and *ret_short. A name longer than half
 * of SHORT_NAME_BYTES has only one form. */
void short_name_make(struct span name, struct short_name *ret_short);

#endif
