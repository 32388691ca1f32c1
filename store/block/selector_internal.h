/*
 * selector_internal: the parsed selector, which the files store/block/selector_*.c share.
 * selector_parse.c makes it from a text, selector_canonical.c makes a text from it, and
 * selector_match.c matches series and samples with it.
 *
 * Threads: as selector.h.
 */
#ifndef STORE_BLOCK_SELECTOR_INTERNAL_H
#define STORE_BLOCK_SELECTOR_INTERNAL_H

#include "lib/base/map.h"
#include "store/block/selector.h"

struct regex;

enum {
    SELECTOR_TYPE_PARTS_MAX = SELECTOR_TYPE_PARTS + 1, /* with the suffix */
    SELECTOR_TEXT_MAX_BYTES = 1 << 24                  /* a type's whole name, or a number */
};

enum comparison { EQUALS, DIFFERS, MATCHES, MATCHES_NOT };

struct matcher {
    struct span name;
    struct span value;
    enum comparison comparison;
    bool is_of_type;    /* compares the type, not a label */
    bool matches_empty; /* an absent label is empty, and the empty value matches */
    struct regex *regex;
    struct map_bytes known; /* cached results of regex by value */
    size_t known_bytes;
};

struct selector {
    struct arena *arena;
    struct matcher matchers[SELECTOR_MAX_MATCHERS + 1]; /* the type and the labels */
    size_t matcher_count;
    bool has_type;   /* one of them is the type's */
    bool was_kept;   /* selector_parse_stored made it: every value has to be compared */
    struct buf type; /* the name of the current type, for expressions */
    selector_check *check;
    void *check_context;
    int64_t unchecked_ns; /* upper bound of the time that matches have taken since the last check */
};

#endif
