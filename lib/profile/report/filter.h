/*
 * filter: selects the samples and frames of a profile that a report uses. The terms are pprof's.
 *
 *   focus   keep samples in which some frame matches
 *   ignore  drop samples in which some frame matches
 *   hide    remove matching frames from the stacks
 *   show    remove all other frames from the stacks
 *   label   keep samples with a label, see label_filter.h
 *
 * As in github.com/google/pprof (profile/filter.go), an expression matches a line (one frame,
 * possibly of an inlined call) when it matches the function's name or file name. A location matches
 * as a whole by the file name of its mapping, too: then focus and ignore match, hide removes and
 * show keeps all its lines. Any show removes locations without lines. A sample that loses all its
 * frames is dropped; so is, under any rule about frames, a sample that had none. ignore takes
 * precedence over focus. focus and ignore match the frames of the profile, including those that
 * other rules hide.
 *
 * An expression that contains "0x" may refer to an address. It also matches a location as a whole
 * by its name without symbols (raw_name.h), so a link that was made before symbols arrived still
 * finds its frames. pprof has no such names.
 *
 * A rule may be given several times: every focus must match, any ignore drops the sample, and hides
 * and shows apply one after the other in the given order.
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
    /* lib/regex/regex.h, or key=value of a label; a rule with an empty pattern has no effect */
    struct span pattern;
};

struct buf;
struct filter;

/*
 * Compiles rules into arena; patterns must live as long. *ret_filter is NULL when no rule has an
 * effect. Errors: ERR_INVALID (an expression; the message names the rule), ERR_TOO_LARGE (more
 * than FILTER_RULES_MAX).
 */
enum err_code filter_create(struct arena *arena, const struct filter_rule *rules, size_t rule_count,
                            const struct filter **ret_filter, struct err *err) MUST_USE;

/* Whether the expression may refer to an address: it contains "0x". */
bool filter_is_of_addresses(struct span pattern);

/* "focus", "ignore", "hide", "show", "label". */
const char *filter_action_name(enum filter_action action);

/* Appends bytes that identify this filter, as a key of caches: filters that select different
 * samples or frames have different bytes. */
void filter_append_rules(const struct filter *filter, struct buf *text);

struct label_match;

/* The bits of filter_result.verdicts. */
enum {
    FILTER_LOCATION_IGNORED = 1, /* a sample with this location is dropped */
    FILTER_LOCATION_HIDDEN = 2,  /* all of its lines are removed */
};
/* The result of a filter for one profile. */
struct filter_result {
    const struct label_match *labels; /* which samples pass, by their labels; NULL: all */
    bool has_frame_rules;             /* if not set, the members below have no effect */
    /* number of focus rules; a sample must have a location for each */
    uint32_t focus_count;
    const uint32_t *focus_matches; /* per location: bit i is set if focus rule i matches */
    const uint8_t *verdicts;       /* per location: a set of FILTER_LOCATION_* */
    const uint8_t *line_is_hidden; /* per line of the profile: 1 if it is removed */
};

/* Called every FILTER_CHECK_STEPS locations of each rule: an error ends filter_apply with it. */
struct filter_check {
    enum err_code (*check)(void *context, struct err *err);
    void *context;
};
enum { FILTER_CHECK_STEPS = 4096 };

/*
 * Applies filter to profile; *ret_result is in arena. first_line[i] is the first line of location i
 * that is used, as an index into profile->lines (after drop_frames, see view.h). check may be NULL.
 * Errors: ERR_INVALID (an expression is too costly), those of check.
 */
enum err_code filter_apply(const struct filter *filter, const struct profile *profile,
                           const uint32_t *first_line, const struct filter_check *check,
                           struct arena *arena, struct filter_result *ret_result,
                           struct err *err) MUST_USE;

#endif
