/*
 * view: one or two profiles in the form that reports use: one value type, filtered and grouped, as
 * stacks of frames from the root to the leaf. Every report (flame, top, callers, diff) starts from
 * a view, so their numbers agree.
 *
 * The steps, in the order of github.com/google/pprof: drop samples whose value is 0; apply the
 * profile's drop_frames and keep_frames as `go tool pprof` does when it loads a file (prune.h);
 * apply the filter; group. An invalid or costly drop_frames expression is ignored, and
 * view->drop_frames_failed is set.
 *
 * Grouping decides which frames are equal:
 *
 *   function  by name; a function without a name by its system name; an address without symbols is
 *             "libc.so.6+0x2a10", or "0x7f32a0" of an unknown binary (raw_name.h);
 *             without an address "[libc.so.6]" or "<unknown>"
 *   file      by source file; unknown: "[libc.so.6]" or "<unknown>"
 *   line      by function, file and line
 *   address   by binary and address, inlined calls also by function and line;
 *             "0x4f2a10 main.run", of very long names the first 240 bytes
 *   binary    by the file of the mapping; adjacent frames of one binary are one frame
 *   <label>   also "label:<label>" (required for a label named like a word above): the
 *             value of that sample label becomes the first frame below the root,
 *             "(no <label>)" if the sample has none; several values of one sample are
 *             joined by commas, up to 4 kB and then "…"; the function frames follow
 *
 * If file and line differ within a group, those of its first occurrence are used.
 *
 * Values are int64; sums are clamped to the range of int64. Everything is in the given arena;
 * strings are partly in the profiles, which must live as long. The result is deterministic.
 *
 * Reports check the deadline of their view (view_check_cpu). Where a header of this folder lists
 * "the view's deadline" as a reason for ERR_TOO_LARGE, the function also returns ERR_CANCELLED if
 * the client no longer waits for the report.
 *
 * Threads: an object belongs to one thread; profiles may be shared.
 */
#ifndef LIB_PROFILE_REPORT_VIEW_H
#define LIB_PROFILE_REPORT_VIEW_H

#include "lib/base/wait_limit.h"
#include "lib/profile/profile.h"

struct filter;
struct frame_lists;

/* Flags of a frame. The first three are set only if they apply to all its occurrences. */
enum {
    FRAME_INLINED = 1,
    FRAME_KERNEL = 2,
    /* Its source file is Python, JavaScript, TypeScript, Ruby, PHP, Perl or Lua, or an agent
     * assigned it to the mapping "[cpython]" or "[ruby]". */
    FRAME_INTERPRETED = 4,
    FRAME_NOT_SYMBOLISED = 8, /* the first occurrence has no function; never by binary */
    FRAME_OTHER = 16,         /* the subtrees that were cut (flame.h) */
    FRAME_LABEL = 32          /* the value of a label, or the frame that reports a cut stack */
};

struct frame {
    struct span name;
    struct span file;    /* source file, or empty */
    struct span mapping; /* file name of the binary, or empty */
    int64_t line;        /* by line and address: of the call; else of its start; 0: unknown */
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
    struct span sample_type; /* as profile_find_value_type */
    struct span group_by;    /* empty: function */
    /* the label to group by exists, whether or not a sample has it */
    bool is_label_known;
    const struct filter *filter;  /* or NULL */
    int64_t cpu_deadline_ns;      /* parallel_cpu_ns() at which to give up; 0: no limit */
    struct wait_limit wait_limit; /* whether the client still waits for the report */
    /* Per enum view_side: the sum of the values of samples that the caller removed from the
     * profile, in the profile's unit. The total includes it. */
    int64_t left_out[2];
};

/* The grouping that group_by of view_options names; VIEW_BY_LABEL for all other words. */
enum view_group view_find_group(struct span group_by);
/* Whether group_by of view_options is a label; if so, *ret_label is its name. */
bool view_find_label(struct span group_by, struct span *ret_label);

enum { VIEW_ROOT_FRAME = 0 }; /* frames[0], named "root"; stacks do not contain it */

enum view_side { VIEW_SIDE_B, VIEW_SIDE_A, VIEW_SIDE_COUNT };

/*
 * With one profile all values are on side B. In a diff side A is the base, and side B is compared
 * with it. Stack i has the frames entries[stack_start[i] .. stack_start[i + 1]), root side first.
 * It may be empty (its value is the root's own) and may occur several times.
 */
struct view {
    const struct profile *profile; /* of side B */
    uint32_t value_type;           /* of profile */
    struct span unit;              /* of all values */
    enum view_group group;
    struct span group_by; /* as requested, "function" by default */
    bool is_diff;
    bool is_normalised;
    bool drop_frames_failed;
    bool has_cut_stacks; /* see VIEW_USUAL_DEPTH */
    /* From the options, for view_check_cpu. */
    int64_t cpu_deadline_ns;
    struct wait_limit wait_limit;

    const struct frame *frames;
    uint32_t frame_count;
    /* The files and binaries of frames that occur in several files or binaries. A frame contains
     * only the first file and the first binary, so an expression that matches one of these strings
     * matches more or less in the profile than in the frames. */
    const struct span *shared_origins;
    uint32_t shared_origin_count;
    uint32_t stack_count;
    const uint64_t *stack_start;
    const uint32_t *entries;
    const uint32_t *value_side; /* per stack: enum view_side */
    const int64_t *values;      /* per stack, never 0 */
    const uint32_t *samples;    /* per stack: index of the sample in the profile of its side */
    const struct profile *profiles[VIEW_SIDE_COUNT]; /* NULL if there is no such side */
    /* Frames of each location, without hidden ones, for raw_path.h; NULL if there is no such side.
     */
    const struct frame_lists *lists[VIEW_SIDE_COUNT];
    /* The view that a rule chain was applied to (rule_chain.h), whose stacks match lists; NULL:
     * this view. */
    const struct view *without_chain;

    /* Sums of values; for side B of a normalised diff after scaling. */
    int64_t total[VIEW_SIDE_COUNT];      /* of all samples, before filtering: 100 % in pprof */
    int64_t kept[VIEW_SIDE_COUNT];       /* of the stacks above */
    uint64_t magnitude[VIEW_SIDE_COUNT]; /* of all samples, as absolute values */
    double scale; /* 1, or the factor of side B in a normalised diff: see view_scaled */
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
 * Limits of the stacks of a view. An entry is a frame of a stack, including inlined calls. If all
 * stacks together have more than VIEW_ENTRIES_USUAL entries, stacks deeper than VIEW_USUAL_DEPTH
 * lose frames at the root; if they then still have more than VIEW_ENTRIES_MAX, that depth is halved
 * until they fit. No stack keeps more than VIEW_DEPTH_MAX frames. A cut stack gets the root
 * "[frames above the last N are cut]". Totals and flat values stay exact.
 */
#define VIEW_ENTRIES_MAX (UINT64_C(1) << 28)
#define VIEW_ENTRIES_USUAL (UINT64_C(1) << 26)
enum { VIEW_USUAL_DEPTH = 1024, VIEW_DEPTH_MAX = 1 << 18 };

/*
 * Creates a view. Errors: ERR_INVALID (no such sample type, or no such label to group or filter
 * by; an expression of the filter is too costly), ERR_TOO_LARGE (the stacks exceed VIEW_ENTRIES_MAX
 * even if cut to one frame; the values of the label to group by have more than 64 MiB; the
 * deadline; the magnitudes of all values of both sides reach INT64_MAX: below it every sum is
 * exact), ERR_CANCELLED (wait_limit).
 */
enum err_code view_create(struct arena *arena, const struct profile *profile,
                          const struct view_options *options, const struct view **ret_view,
                          struct err *err) MUST_USE;

/* Checks the deadline and the wait limit of the options. Call it every VIEW_CHECK_STEPS steps, on
 * the thread that made the view. Errors: ERR_TOO_LARGE (the deadline has passed), ERR_CANCELLED
 * (the client no longer waits). */
enum err_code view_check_cpu(const struct view *view, struct err *err) MUST_USE;
enum { VIEW_CHECK_STEPS = 4096 };

/* One side of a view, for diff.h. */
struct view_source {
    const struct profile *profile;
    uint32_t value_type;
    enum view_side side;
    struct span unit; /* of the values in the view */
    int64_t factor;   /* converts from the unit of the profile, at least 1 */
};

/* Creates a view from one or two sides; sources[0] is side B. options->sample_type is ignored.
 * Errors: those of view_create. */
enum err_code view_create_from(struct arena *arena, const struct view_source *sources,
                               size_t source_count, const struct view_options *options,
                               struct view **ret_view, struct err *err) MUST_USE;

/* Sets the factor of side B, once, and scales total and kept. Errors: ERR_TOO_LARGE (the scaled
 * magnitudes reach 2^63). */
enum err_code view_scale(struct view *view, double scale, struct err *err) MUST_USE;

/*
 * Scales and rounds a sum of stack values of one side for display. Single values stay unscaled: a
 * thousand of them, each scaled to a third, would all round to 0.
 */
int64_t view_scaled(const struct view *view, enum view_side side, int64_t sum);
/* The same for both sides. */
void view_scale_sums(const struct view *view, int64_t sums[VIEW_SIDE_COUNT]);

/* a + b, clamped to int64. */
static inline int64_t view_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

#endif
