/*
 * filter: which samples and frames of a profile a report sees; the words are pprof's.
 *
 *   focus   keep samples where some frame matches
 *   ignore  leave out samples where some frame matches
 *   hide    take matching frames out of the stacks
 *   show    take all other frames out of the stacks
 *   label   keep samples with a label, see label_filter.h
 *
 * As in github.com/google/pprof (profile/filter.go): an expression matches a line (one frame, an
 * inlined call too) when it matches the function's name or its file name; for focus and ignore a
 * location also matches by the file name of its mapping, and then hide takes out and show keeps the
 * location with all its lines. A location without lines goes away under any show. A sample
 * that loses all its frames is left out; so is, under any rule about frames, one that had none.
 * ignore wins over focus. focus and ignore look at the frames as they are in the profile, whatever
 * is hidden.
 *
 * An expression with "0x" in it may be of an address: it also matches a location, as by its
 * mapping, by what that is called without symbols (raw_name.h), so that a link that was made before
 * names came still finds its frames. pprof knows no such names.
 *
 * A rule may be given several times: every focus must match, any ignore leaves out, hides and
 * shows apply one after the other in the order given.
 *
 * Threads: a filter belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_FILTER_H
#define LIB_PROFILE_REPORT_FILTER_H

#include "lib/profile/profile.h"

enum { FILTER_RULES_MAX = 32 };

enum filter_action { FILTER_FOCUS, FILTER_IGNORE, FILTER_HIDE, FILTER_SHOW, FILTER_LABEL };
enum { FILTER_ACTION_COUNT = FILTER_LABEL + 1 };

struct filter_rule {
    enum filter_action action;
    /* lib/base/regex.h, or key=value of a label; a rule with an empty pattern does nothing */
    struct span pattern;
};

struct filter;

/*
 * Compiles rules into arena; patterns live as long. *ret_filter is NULL when there is nothing to
 * filter. Handles: ERR_INVALID (an expression; the message names the rule), ERR_TOO_LARGE (more
 * than FILTER_RULES_MAX).
 */
enum err_code filter_create(struct arena *arena, const struct filter_rule *rules, size_t rule_count,
                            const struct filter **ret_filter, struct err *err) MUST_USE;

/* May the expression be of an address? */
bool filter_is_of_addresses(struct span pattern);

/* "focus", "ignore", "hide", "show", "label". */
const char *filter_action_name(enum filter_action action);

/* What tells this filter from others that keep other samples or frames; appended. */
void filter_append_rules(const struct filter *filter, struct buf *text);

/*
 * What a filter says of one profile, looked up per location and line. line_is_hidden has one byte
 * per profile line. verdicts has one byte per location: a set of FILTER_LOCATION_*.
 */
struct label_match;
enum {
    FILTER_LOCATION_IGNORED = 1, /* a sample with it is left out */
    FILTER_LOCATION_HIDDEN = 2,  /* nothing of it is left */
};
struct filter_result {
    const struct label_match *labels; /* or NULL: any sample */
    bool has_frame_rules;             /* else all the rest says nothing */
    uint32_t focus_count;             /* rules; a sample must have a location with each */
    const uint32_t *focus_matches;    /* per location: bit i is set when focus i matches */
    const uint8_t *verdicts;
    const uint8_t *line_is_hidden;
};

/*
 * Applies filter to profile; *ret_result lives in arena. first_line[i] is the first line of
 * location i that counts, as an index into profile->lines (what drop_frames leaves, see view.h).
 * Handles: ERR_INVALID (an expression is too costly).
 */
enum err_code filter_apply(const struct filter *filter, const struct profile *profile,
                           const uint32_t *first_line, struct arena *arena,
                           struct filter_result *ret_result, struct err *err) MUST_USE;

#endif
