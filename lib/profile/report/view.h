/*
 * view: a profile, or two, as a report sees them: one value type, filtered, grouped, as stacks of
 * frames from the root to the leaf. Every report (flame, top, callers, diff) starts from one, so
 * they agree with each other.
 *
 * Steps, in the order of github.com/google/pprof: samples whose value is 0 are left out;
 * drop_frames and keep_frames of the profile are obeyed as `go tool pprof` does when it loads a
 * file (a frame that matches, and what it called, is cut away, unless it is the root of the
 * stack); then the filter; then grouping. A bad or costly drop_frames expression is ignored, and
 * view->drop_frames_failed says so.
 *
 * Grouping decides which frames are one:
 *   function  by name; a function without name counts by its system name; what is not symbolised is
 *             "libc.so.6+0x2a10", or "0x7f32a0" of an unknown binary (raw_name.h); without an
 * address
 *             "[libc.so.6]" or "<unknown>"
 *   file      by source file; unknown: "[libc.so.6]" or "<unknown>"
 *   line      by function, file and line
 *   address   by binary and address, inlined calls by function and line too; "0x4f2a10 main.run",
 *             of very long names the first 240 bytes
 *   binary    by the mapping's file; neighbours in one binary are one frame
 *   <label>   also "label:<label>" (the only way for a label named like a word above): the value of
 *             that sample label becomes the first frame below the root, "(no <label>)" where a
 *             sample has none; several values of one sample stand with commas between, up to 4 kB
 *             and then "…"; the function frames follow
 * A file and line that differ within a group are those of its first occurrence.
 *
 * Values are int64 and sums stay at the ends of int64 when they would pass them. Everything lives
 * in the arena given, strings partly in the profiles, which must live as long. Deterministic.
 * Threads: an object belongs to one thread; profiles may be shared.
 */
#ifndef LIB_PROFILE_REPORT_VIEW_H
#define LIB_PROFILE_REPORT_VIEW_H

#include "lib/base/wait_limit.h"
#include "lib/profile/profile.h"

struct filter;
struct frame_lists;

/* Flags of a frame; 1, 2 and 4 when they hold for all its occurrences. */
enum {
    FRAME_INLINED = 1,
    FRAME_KERNEL = 2,
    FRAME_INTERPRETED = 4,    /* its source file is of Python, JavaScript, Ruby, PHP, Perl or Lua */
    FRAME_NOT_SYMBOLISED = 8, /* never of binaries */
    FRAME_OTHER = 16,         /* stands for the subtrees that were cut (flame.h) */
    FRAME_LABEL = 32          /* the value of a label */
};

struct frame {
    struct span name;
    struct span file;    /* source file, or empty */
    struct span mapping; /* file name of the binary, or empty */
    int64_t line;        /* by function: of its start, by line: of the call; 0: unknown */
    uint64_t address;    /* 0 unless grouped by address */
    uint8_t flags;
};

enum view_group {
    VIEW_BY_FUNCTION,
    VIEW_BY_FILE,
    VIEW_BY_LINE,
    VIEW_BY_ADDRESS,
    VIEW_BY_BINARY,
    VIEW_BY_LABEL
};

struct view_options {
    struct span sample_type;      /* as profile_find_value_type */
    struct span group_by;         /* empty: function */
    bool is_label_known;          /* a label to group by is one, whether a sample has it or not */
    const struct filter *filter;  /* or NULL */
    int64_t cpu_deadline_ns;      /* parallel_cpu_ns() at which to give up; 0: never */
    struct wait_limit wait_limit; /* whether anybody waits for the report */
    /* Of samples that are no longer in the profile, per enum view_side: part of the total. */
    int64_t left_out[2];
};

/* Is group_by of view_options a label? Then *ret_label is its name. */
bool view_find_label(struct span group_by, struct span *ret_label);

enum { VIEW_ROOT_FRAME = 0 }; /* frames[0], named "root"; it is in no stack */

enum view_side { VIEW_SIDE_B, VIEW_SIDE_A, VIEW_SIDE_COUNT };

/*
 * With one profile all values are on side B. In a diff side A is the base and B what is compared
 * with it. Stack i is frames entries[stack_start[i] .. stack_start[i + 1]), the root-most first; it
 * may be empty (its value is the root's own) and may occur several times.
 */
struct view {
    const struct profile *profile; /* of side B */
    uint32_t value_type;           /* of profile */
    struct span unit;              /* of all values */
    enum view_group group;
    struct span group_by; /* as asked for, "function" by default */
    bool is_diff;
    bool is_normalised;
    bool drop_frames_failed;
    bool has_cut_stacks;          /* see VIEW_USUAL_DEPTH */
    int64_t cpu_deadline_ns;      /* as in the options, for what is made from the view */
    struct wait_limit wait_limit; /* likewise */

    const struct frame *frames;
    uint32_t frame_count;
    /* Files and binaries of frames that lie in several of them, of which a frame tells the first:
     * what an expression finds among these is more or less than it finds by the frames. */
    const struct span *shared_places;
    uint32_t shared_place_count;
    uint32_t stack_count;
    const uint64_t *stack_start;
    const uint32_t *entries;
    const uint32_t *value_side; /* per stack: enum view_side */
    const int64_t *values;      /* per stack, never 0 */
    const uint32_t *samples;    /* per stack: of which sample of its side's profile it is */
    const struct profile *profiles[VIEW_SIDE_COUNT]; /* NULL where there is no such side */
    /* Of each location, without what the filter hides; NULL likewise. For raw_path.h. */
    const struct frame_lists *lists[VIEW_SIDE_COUNT];
    /* What a chain of rules was applied to (rule_chain.h), whose stacks are as lists has them;
     * NULL: this one. */
    const struct view *without_chain;

    int64_t total[VIEW_SIDE_COUNT]; /* of all samples, before filtering, as pprof counts 100 % */
    int64_t kept[VIEW_SIDE_COUNT];  /* of the stacks above */
    uint64_t magnitude[VIEW_SIDE_COUNT]; /* of all samples, without their signs */
    double scale; /* 1, or what a normalised diff multiplies side B by: see view_scaled */
};

static inline struct span view_sample_type(const struct view *view)
{
    return profile_string(view->profile, view->profile->value_types[view->value_type].type);
}
static inline struct span view_unit(const struct view *view)
{
    return view->unit;
}

/*
 * Handles: ERR_INVALID (no such sample type or label, to group or to filter by; an expression of
 * the filter is too costly), ERR_TOO_LARGE (stacks with all their inlined calls pass
 * VIEW_ENTRIES_MAX; the deadline; the values, without their signs and of both sides together, come
 * to INT64_MAX: below it whatever is summed of them is exact).
 */
#define VIEW_ENTRIES_MAX (UINT64_C(1) << 28)
/* When all stacks with their inlined calls are more than VIEW_ENTRIES_USUAL entries, those deeper
 * than VIEW_USUAL_DEPTH lose frames at the root; when they pass VIEW_ENTRIES_MAX, all that are
 * deeper than a depth with which they fit. A frame "[frames above the last N are cut]" is their
 * root. Totals and the values of functions themselves stay exact. */
#define VIEW_ENTRIES_USUAL (UINT64_C(1) << 26)
enum { VIEW_USUAL_DEPTH = 1024 };
enum err_code view_create(struct arena *arena, const struct profile *profile,
                          const struct view_options *options, const struct view **ret_view,
                          struct err *err) MUST_USE;

/* Is the options' deadline over? To be called every few thousand steps, on the thread that made the
 * view. Handles: ERR_TOO_LARGE. */
enum err_code view_check_cpu(const struct view *view, struct err *err) MUST_USE;
enum { VIEW_CHECK_STEPS = 4096 };

/* One side of a view, for diff.h. */
struct view_source {
    const struct profile *profile;
    uint32_t value_type;
    enum view_side side;
    struct span unit; /* of the values as they are in the view */
    int64_t factor;   /* what makes that of the profile's own, at least 1 */
};

/* options->sample_type is ignored. sources[0] is side B. */
enum err_code view_create_from(struct arena *arena, const struct view_source *sources,
                               size_t source_count, const struct view_options *options,
                               struct view **ret_view, struct err *err) MUST_USE;

/* Multiplies side B; total and kept are so at once. Handles: ERR_TOO_LARGE (as view_create). */
enum err_code view_scale(struct view *view, double scale, struct err *err) MUST_USE;

/*
 * A sum of the stacks' values of one side, as it is shown: scaled and rounded. The values
 * themselves stay what they are, since a thousand of them, each scaled to a third, would all be
 * rounded to 0.
 */
int64_t view_scaled(const struct view *view, enum view_side side, int64_t sum);
/* The same for both sides. */
void view_scale_sums(const struct view *view, int64_t sums[VIEW_SIDE_COUNT]);

/* a + b, kept within int64. */
static inline int64_t view_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

#endif
