/*
 * short_name: ever shorter forms of a function's name, for boxes that are too narrow for the whole.
 *
 * Without the path of the package; without arguments, those of types too, and what compilers put
 * around a name; without packages or name spaces. Go, C++, Rust and Java are told apart by how
 * they are written. Boxes of the page have the same (web/src/model/names.ts); tests/short_names.txt
 * holds for both. Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_SHORT_NAME_H
#define LIB_PROFILE_PICTURE_SHORT_NAME_H

#include "lib/base/buf.h"

enum { SHORT_NAME_FORMS = 8, SHORT_NAME_BYTES = 4096 };

struct short_name {
    struct span forms[SHORT_NAME_FORMS]; /* the whole first, each shorter than the one before */
    size_t count;                        /* at least 1 */
    char text[SHORT_NAME_BYTES];         /* what some of the forms lie in */
};

/* Forms live as long as name and *ret_short. Names of more than half of SHORT_NAME_BYTES have but
 * one. */
void short_name_make(struct span name, struct short_name *ret_short);

#endif
