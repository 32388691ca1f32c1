/*
 * regex_layout: how many items of a pattern PCRE2's DFA matcher tracks at once.
 *
 * The DFA matcher keeps one state for each item of the pattern that may be next at a position of
 * the subject. An item can only be next after as many characters as the items before it match:
 * after 0 to 2 for "b" in "a{0,2}b", and after any number from 3 on for "d" in "abc.*d". So each
 * item has a range of positions, alternatives have the same range, and the items whose ranges
 * contain a position can be active there together. A repeat widens the ranges of what it repeats;
 * {n,m} also makes m copies of it. If each copy can begin at only one position, the copies are
 * active one after the other, and count once.
 *
 * Private to regex*.c. Threads: an object belongs to one thread.
 */
#ifndef LIB_REGEX_REGEX_LAYOUT_H
#define LIB_REGEX_REGEX_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

struct regex_scan;

enum {
    REGEX_LAYOUT_NEST_MAX = 100,          /* groups inside groups */
    REGEX_LAYOUT_POSITIONS_MAX = 1 << 24, /* a number of characters: so many or more */
};

struct regex_layout_item {
    uint32_t first;       /* characters before it: at least, … */
    uint32_t last;        /* … and at most */
    uint32_t copies;      /* that can be active at one position */
    uint32_t most_copies; /* all copies, for an enclosing repeat that begins at many positions */
};

/* How many characters a part of the pattern can match. */
struct regex_extent {
    uint32_t least, most; /* at most REGEX_LAYOUT_POSITIONS_MAX */
};

struct regex_layout_group {
    size_t first_item;
    struct regex_extent begin; /* before the group */
    struct regex_extent ends;  /* after the alternatives so far; none: least has the maximum */
};

struct regex_layout {
    struct regex_layout_item *items;
    size_t count;
    struct regex_extent at; /* after the items so far of the alternative */
    struct regex_layout_group groups[REGEX_LAYOUT_NEST_MAX + 1];
    size_t depth;
    size_t last_item;               /* where the item begins that a repeat would apply to, … */
    struct regex_extent last_begin; /* … and the extent before it */
};

/* See regex_states in regex.h: for subjects of at most REGEX_MEAN_BYTES, and for longer ones. */
struct regex_states {
    uint32_t mean, most;
};

void regex_layout_init(struct regex_layout *layout, size_t pattern_bytes);
void regex_layout_fini(struct regex_layout *layout);
/* Adds the item that began at start and that the scanner has accepted. */
void regex_layout_add(struct regex_layout *layout, const struct regex_scan *scanner, size_t start);
struct regex_states regex_layout_states(const struct regex_layout *layout);

#endif
