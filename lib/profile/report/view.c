#include "lib/profile/report/view.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/parallel.h"
#include "lib/profile/prune.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/frame_table.h"
#include "lib/profile/report/label_filter.h"
#include "lib/regex/regex.h"

#include <inttypes.h>
#include <math.h>

/* One side of the view: everything that is known before its samples are read. */
struct side {
    const struct profile *profile;
    const struct view_source *source;
    struct prune prune;
    bool has_filter;
    struct filter_result filter;
    struct frame_lists lists;
    bool has_label;
    uint32_t label_key; /* string */
};

struct build {
    const int64_t *left_out; /* per side */
    struct arena *arena;
    struct view *view;
    struct frame_table *table;
    struct side sides[VIEW_SIDE_COUNT];
    size_t side_count;
    uint64_t *stack_start;
    uint32_t *entries;
    uint32_t *value_side;
    int64_t *values;
    uint32_t *samples;
    uint64_t entry_count;
    uint64_t max_depth;   /* frames of a stack */
    uint32_t cut_frame;   /* valid if view->has_cut_stacks */
    struct span no_label; /* the frame of samples without the label: "(no thread)" */
    struct buf label_text;
    size_t label_bytes; /* sizes of all values of the label that have a frame */
};

enum {
    LABEL_TEXT_BYTES_MAX = 4096,
    LABELS_BYTES_MAX = 64 << 20, /* limit of label_bytes */
    TYPE_NAME_BYTES_MAX = 256
};

int64_t view_scaled(const struct view *view, enum view_side side, int64_t sum)
{
    if (side != VIEW_SIDE_B || view->scale == 1)
        return sum;
    return (int64_t)round((double)sum * view->scale); /* view_scale has checked that it fits */
}

void view_scale_sums(const struct view *view, int64_t sums[VIEW_SIDE_COUNT])
{
    sums[VIEW_SIDE_B] = view_scaled(view, VIEW_SIDE_B, sums[VIEW_SIDE_B]);
}

static enum err_code too_much_to_add(const struct profile *profile, uint32_t value_type,
                                     struct err *err)
{
    buf_auto name;
    buf_init(&name, TYPE_NAME_BYTES_MAX);
    profile_append_type_name(profile, value_type, &name);
    return err_set(err, ERR_TOO_LARGE,
                   "the values of sample type %.*s come to 2^63 - 1 or more, too much to be added "
                   "exactly: look at another sample type, or load the original file",
                   SPAN_PRINT(buf_span(&name)));
}

enum err_code view_scale(struct view *view, double scale, struct err *err)
{
    double scaled = (double)view->magnitude[VIEW_SIDE_B] * fabs(scale);
    if (!(scaled + (double)view->magnitude[VIEW_SIDE_A] < 0x1.fffp62)) /* slightly below 2^63 */
        return too_much_to_add(view->profile, view->value_type, err);
    view->scale = scale;
    view_scale_sums(view, view->total);
    view_scale_sums(view, view->kept);
    return ERR_NONE;
}

enum err_code view_check_cpu(const struct view *view, struct err *err)
{
    if (wait_limit_is_cancelled(&view->wait_limit))
        return err_set(err, ERR_CANCELLED,
                       "the client no longer waits for the report: request it again");
    if ((view->cpu_deadline_ns == 0 || parallel_cpu_ns() < view->cpu_deadline_ns) &&
        !wait_limit_is_late(&view->wait_limit))
        return ERR_NONE;
    return err_set(err, ERR_TOO_LARGE,
                   "the report takes too long to compute: narrow it with focus or ignore, or look "
                   "at a part of the profile");
}

/* ---- grouping ---- */

static bool find_group(struct span text, enum view_group *ret_group)
{
    static const struct {
        const char *name;
        enum view_group group;
    } groups[] = {{"", VIEW_BY_FUNCTION},       {"function", VIEW_BY_FUNCTION},
                  {"file", VIEW_BY_FILE},       {"line", VIEW_BY_LINE},
                  {"address", VIEW_BY_ADDRESS}, {"binary", VIEW_BY_BINARY}};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (span_equal_text(text, groups[i].name)) {
            *ret_group = groups[i].group;
            return true;
        }
    }
    return false;
}

enum view_group view_find_group(struct span group_by)
{
    enum view_group group;
    return find_group(group_by, &group) ? group : VIEW_BY_LABEL;
}

bool view_find_label(struct span group_by, struct span *ret_label)
{
    enum view_group group;
    if (find_group(group_by, &group))
        return false;
    const size_t prefix = span_starts_with(group_by, "label:") ? strlen("label:") : 0;
    *ret_label = span_of(group_by.data + prefix, group_by.size - prefix);
    return true;
}

static uint32_t label_count(const struct profile *profile)
{
    return profile->sample_count ? profile->label_start[profile->sample_count] : 0;
}

static void find_label(struct side *side, struct span key)
{
    for (uint32_t i = 0; i < label_count(side->profile) && !side->has_label; i++) {
        uint32_t string = side->profile->labels[i].key;
        if (span_equal(profile_string(side->profile, string), key)) {
            side->has_label = true;
            side->label_key = string;
        }
    }
}

static enum err_code unknown_label(const struct build *build, struct span key, struct err *err)
{
    buf_auto known;
    buf_init(&known, ERR_MESSAGE_BYTES / 2);
    label_filter_append_keys(build->sides[0].profile, &known);
    return err_set(err, ERR_INVALID,
                   "cannot group by '%.*s': it is neither function, file, line, address or binary "
                   "nor a label of this profile%.*s",
                   key.size > 100 ? 100 : (int)key.size, (const char *)key.data,
                   SPAN_PRINT(buf_span(&known)));
}

static enum err_code choose_group(struct build *build, const struct view_options *options,
                                  struct err *err)
{
    struct view *view = build->view;
    const struct span text = options->group_by;
    view->group_by = text.size ? text : SPAN_LITERAL("function");
    if (find_group(text, &view->group))
        return ERR_NONE;
    struct span key;
    view->group = VIEW_BY_LABEL;
    view_find_label(text, &key);
    build->no_label = span_text(arena_printf(build->arena, "(no %.*s)", SPAN_PRINT(key)));
    bool has_label = options->is_label_known, has_samples = false;
    for (size_t i = 0; i < build->side_count; i++) {
        find_label(&build->sides[i], key);
        has_label |= build->sides[i].has_label;
        has_samples |= build->sides[i].profile->sample_count > 0;
    }
    /* A profile without samples, such as an idle window, may be grouped by any label. */
    return has_label || !has_samples ? ERR_NONE : unknown_label(build, key, err);
}

static const struct profile_label *next_label(const struct side *side, uint32_t sample,
                                              uint32_t *at)
{
    const struct profile *profile = side->profile;
    while (*at < profile->label_start[sample + 1]) {
        const struct profile_label *label = &profile->labels[(*at)++];
        if (side->has_label && label->key == side->label_key)
            return label;
    }
    return NULL;
}

/* Appends a label; if it does not fit, appends "…" and returns false. */
static bool append_label(struct buf *text, const struct profile *profile,
                         const struct profile_label *label)
{
    static const char cut[] = "\xe2\x80\xa6";
    enum { NUMBER_BYTES = 22 };
    struct span word = profile_string(profile, label->is_numeric ? label->unit : label->text);
    if (text->size)
        buf_append_byte(text, ',');
    if (text->size + word.size + NUMBER_BYTES + sizeof(cut) > LABEL_TEXT_BYTES_MAX) {
        buf_append_text(text, cut);
        return false;
    }
    if (label->is_numeric)
        buf_printf(text, "%lld%s", (long long)label->number, label->unit ? " " : "");
    buf_append_span(text, word);
    return true;
}

/* The text of a sample's label: "a", "4096 bytes", or several values joined by commas; empty if
 * the sample has none. A single text is not copied and may have any length. */
static struct span label_value(struct build *build, const struct side *side, uint32_t sample)
{
    struct buf *text = &build->label_text;
    uint32_t at = side->profile->label_start[sample];
    const struct profile_label *label = next_label(side, sample, &at);
    const struct profile_label *next = label ? next_label(side, sample, &at) : NULL;
    if (label && !next && !label->is_numeric)
        return profile_string(side->profile, label->text);
    buf_clear(text);
    while (label && append_label(text, side->profile, label)) {
        label = next;
        next = label ? next_label(side, sample, &at) : NULL;
    }
    return buf_span(text);
}

static uint32_t label_frame(struct build *build, const struct side *side, uint32_t sample)
{
    struct span value = label_value(build, side, sample);
    if (value.size == 0)
        value = build->no_label;
    uint32_t before, after;
    (void)frame_table_frames(build->table, &before);
    const uint32_t frame = frame_table_label(build->table, value);
    (void)frame_table_frames(build->table, &after);
    build->label_bytes += after > before ? value.size : 0;
    return frame;
}

/* ---- stacks ---- */

static int64_t sample_value(const struct side *side, uint32_t sample)
{
    const struct profile *profile = side->profile;
    return profile->values[(size_t)sample * profile->value_type_count + side->source->value_type];
}

static bool passes_filter(const struct side *side, const uint32_t *stack, size_t depth)
{
    if (!side->has_filter || !side->filter.has_frame_rules)
        return true;
    const struct filter_result *filter = &side->filter;
    uint32_t wanted = filter->focus_count == FILTER_RULES_MAX
                          ? UINT32_MAX
                          : (UINT32_C(1) << filter->focus_count) - 1;
    uint32_t found = 0;
    bool has_visible = false;
    for (size_t i = 0; i < depth; i++) {
        uint8_t verdict = filter->verdicts[stack[i]];
        if (verdict & FILTER_LOCATION_IGNORED)
            return false;
        found |= filter->focus_matches[stack[i]];
        has_visible |= !(verdict & FILTER_LOCATION_HIDDEN);
    }
    return found == wanted && has_visible;
}

/* The part of a sample's stack that drop_frames leaves. */
static const uint32_t *sample_stack(const struct side *side, uint32_t sample, size_t *ret_depth)
{
    const struct profile *profile = side->profile;
    const uint32_t *stack = profile->stack + profile->stack_start[sample];
    size_t depth = (size_t)(profile->stack_start[sample + 1] - profile->stack_start[sample]);
    size_t cut = side->prune.marks ? prune_stack(&side->prune, stack, depth) : 0;
    *ret_depth = depth - cut;
    return stack + cut;
}

static bool is_same_binary(const struct build *build, uint32_t a, uint32_t b)
{
    return build->view->group == VIEW_BY_BINARY && a == b;
}

/* The number of frames of a stack including all inlined calls. */
static uint64_t expanded_depth(const struct side *side, const uint32_t *stack, size_t depth)
{
    const uint32_t *start = side->lists.start;
    uint64_t count = 0;
    for (size_t i = 0; i < depth; i++)
        count += start[stack[i] + 1] - start[stack[i]];
    return count;
}

/* The number of frames at the root that a stack loses because it is too deep. A frame that
 * reports the cut takes their place. */
static uint64_t cut_stack(struct build *build, uint64_t depth, uint32_t **entry)
{
    if (depth <= build->max_depth)
        return 0;
    const char *text =
        arena_printf(build->arena, "[frames above the last %" PRIu64 " are cut]", build->max_depth);
    if (!build->view->has_cut_stacks)
        build->cut_frame = frame_table_label(build->table, span_text(text));
    build->view->has_cut_stacks = true;
    *(*entry)++ = build->cut_frame;
    return depth - build->max_depth;
}

static void add_stack(struct build *build, const struct side *side, uint32_t sample, int64_t value,
                      const uint32_t *stack, size_t depth)
{
    uint32_t *entry = build->entries + build->entry_count, *first = entry;
    const uint32_t *start = side->lists.start, *frames = side->lists.frames;
    if (build->view->group == VIEW_BY_LABEL)
        *entry++ = label_frame(build, side, sample);
    uint64_t skipped = cut_stack(build, expanded_depth(side, stack, depth), &entry);
    for (size_t i = depth; i-- > 0;) {
        for (uint32_t j = start[stack[i]]; j < start[stack[i] + 1]; j++) {
            if (skipped)
                skipped--;
            else if (entry == first || !is_same_binary(build, entry[-1], frames[j]))
                *entry++ = frames[j];
        }
    }
    uint32_t index = build->view->stack_count++;
    enum view_side view_side = side->source->side;
    build->entry_count += (uint64_t)(entry - first);
    build->stack_start[index + 1] = build->entry_count;
    build->value_side[index] = view_side;
    build->values[index] = value;
    build->samples[index] = sample;
    build->view->kept[view_side] = view_add(build->view->kept[view_side], value);
}

/* As profile_can_add, for both sides together. */
static bool can_be_added(struct view *view, enum view_side side, int64_t value)
{
    return profile_can_add(&view->magnitude[side], value) &&
           view->magnitude[VIEW_SIDE_A] + view->magnitude[VIEW_SIDE_B] < INT64_MAX;
}

static enum err_code add_stacks(struct build *build, const struct side *side, struct err *err)
{
    int64_t *total = &build->view->total[side->source->side];
    if (__builtin_mul_overflow(build->left_out[side->source->side], side->source->factor, total) ||
        !can_be_added(build->view, side->source->side, *total))
        return too_much_to_add(side->profile, side->source->value_type, err);
    for (uint32_t i = 0; i < side->profile->sample_count; i++) {
        int64_t value;
        const bool is_kept =
            !__builtin_mul_overflow(sample_value(side, i), side->source->factor, &value);
        size_t depth;
        if (i % VIEW_CHECK_STEPS == 0 && view_check_cpu(build->view, err))
            return err->code;
        if (value == 0)
            continue;
        if (!is_kept || !can_be_added(build->view, side->source->side, value))
            return too_much_to_add(side->profile, side->source->value_type, err);
        *total += value;
        if (side->filter.labels && !label_match_passes(side->filter.labels, i))
            continue;
        const uint32_t *stack = sample_stack(side, i, &depth);
        if (passes_filter(side, stack, depth))
            add_stack(build, side, i, value, stack, depth);
        if (build->label_bytes > LABELS_BYTES_MAX)
            return err_set(err, ERR_TOO_LARGE,
                           "the values of the label have more than %d MiB: group by another label",
                           LABELS_BYTES_MAX >> 20);
    }
    return ERR_NONE;
}

/* An upper bound of the entries of one side if each stack is cut to max_depth; pruning and
 * filtering reduce it further. */
static uint64_t side_entries(const struct build *build, const struct side *side, uint64_t max_depth)
{
    const struct profile *profile = side->profile;
    const bool has_label_frame = build->view->group == VIEW_BY_LABEL;
    uint64_t count = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const uint64_t at = profile->stack_start[i], end = profile->stack_start[i + 1];
        const uint64_t depth = expanded_depth(side, profile->stack + at, (size_t)(end - at));
        count += (depth > max_depth ? max_depth + 1 : depth) + has_label_frame;
    }
    return count;
}

static uint64_t entries_needed(const struct build *build, uint64_t max_depth)
{
    uint64_t count = 0;
    for (size_t i = 0; i < build->side_count; i++)
        count += side_entries(build, &build->sides[i], max_depth);
    return count;
}

/*
 * Chooses the depth to which stacks are cut. A profile of a few KB can contain stacks of a million
 * frames: a thousand locations with a thousand inlined calls each. Such a profile must not make all
 * other profiles of a window unreadable. When all stacks together have very many entries, those
 * deeper than VIEW_USUAL_DEPTH are cut; if that is not enough, all stacks are cut to the greatest
 * depth that fits. No stack has more than VIEW_DEPTH_MAX frames, because a flame graph needs some
 * nodes for each level.
 */
static uint64_t choose_depth(struct build *build)
{
    uint64_t needed = entries_needed(build, UINT64_MAX - 1);
    build->max_depth = VIEW_DEPTH_MAX;
    if (needed <= VIEW_ENTRIES_USUAL)
        return needed;
    build->max_depth = VIEW_USUAL_DEPTH;
    while ((needed = entries_needed(build, build->max_depth)) > VIEW_ENTRIES_MAX &&
           build->max_depth > 1)
        build->max_depth /= 2;
    return needed;
}

static enum err_code check_view(void *context, struct err *err)
{
    return view_check_cpu(context, err);
}

static enum err_code prepare_side(struct build *build, struct side *side,
                                  const struct filter *filter, struct err *err)
{
    prune_create(build->arena, side->profile, REGEX_CPU_MS, &side->prune);
    build->view->drop_frames_failed |= side->prune.has_failed;
    side->has_filter = filter != NULL;
    if (filter) {
        const struct filter_check check = {check_view, build->view};
        enum err_code code = filter_apply(filter, side->profile, side->prune.first_line, &check,
                                          build->arena, &side->filter, err);
        if (code)
            return code;
    }
    frame_table_add(build->table, side->profile, side->prune.first_line,
                    filter ? &side->filter : NULL, &side->lists);
    return ERR_NONE;
}

static enum err_code check_label_rules(const struct build *build, struct err *err)
{
    const struct label_match *matches[VIEW_SIDE_COUNT];
    for (size_t i = 0; i < build->side_count; i++)
        matches[i] = build->sides[i].filter.labels;
    return matches[0] ? label_match_check_keys(matches, build->side_count, err) : ERR_NONE;
}

static enum err_code build_stacks(struct build *build, struct err *err)
{
    uint64_t sample_count = 0, needed = choose_depth(build);
    if (needed > VIEW_ENTRIES_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "the stacks with their inlined calls are more than %llu entries",
                       (unsigned long long)VIEW_ENTRIES_MAX);
    for (size_t i = 0; i < build->side_count; i++)
        sample_count += build->sides[i].profile->sample_count;
    build->stack_start = arena_new_raw(build->arena, uint64_t, (size_t)sample_count + 1);
    build->value_side = arena_new_raw(build->arena, uint32_t, (size_t)sample_count);
    build->values = arena_new_raw(build->arena, int64_t, (size_t)sample_count);
    build->samples = arena_new_raw(build->arena, uint32_t, (size_t)sample_count);
    build->entries = arena_new_raw(build->arena, uint32_t, (size_t)needed);
    build->stack_start[0] = 0;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < build->side_count && !code; i++)
        code = add_stacks(build, &build->sides[i], err);
    return code;
}

static void finish_view(struct build *build)
{
    struct view *view = build->view;
    view->frames = frame_table_frames(build->table, &view->frame_count);
    view->shared_origins = frame_table_shared_origins(build->table, &view->shared_origin_count);
    view->stack_start = build->stack_start;
    view->entries = build->entries;
    view->value_side = build->value_side;
    view->values = build->values;
    view->samples = build->samples;
    struct frame_lists *lists = arena_new(build->arena, struct frame_lists, build->side_count);
    for (size_t i = 0; i < build->side_count; i++) {
        lists[i] = build->sides[i].lists;
        view->lists[build->sides[i].source->side] = &lists[i];
        view->profiles[build->sides[i].source->side] = build->sides[i].profile;
    }
}

enum err_code view_create_from(struct arena *arena, const struct view_source *sources,
                               size_t source_count, const struct view_options *options,
                               struct view **ret_view, struct err *err)
{
    struct build build = {
        .arena = arena, .side_count = source_count, .left_out = options->left_out};
    build.view = arena_new(arena, struct view, 1);
    build.view->profile = sources[0].profile;
    build.view->value_type = sources[0].value_type;
    build.view->unit = sources[0].unit;
    build.view->is_diff = source_count > 1;
    build.view->scale = 1;
    build.view->cpu_deadline_ns = options->cpu_deadline_ns;
    build.view->wait_limit = options->wait_limit;
    for (size_t i = 0; i < source_count; i++)
        build.sides[i] = (struct side){.profile = sources[i].profile, .source = &sources[i]};
    enum err_code code = choose_group(&build, options, err);
    if (code)
        return code;
    build.table = frame_table_create(arena, build.view->group);
    for (size_t i = 0; i < source_count && !code; i++)
        code = prepare_side(&build, &build.sides[i], options->filter, err);
    if (!code)
        code = check_label_rules(&build, err);
    buf_init(&build.label_text, LABEL_TEXT_BYTES_MAX);
    if (!code)
        code = build_stacks(&build, err);
    buf_fini(&build.label_text);
    if (code)
        return code;
    finish_view(&build);
    *ret_view = build.view;
    return ERR_NONE;
}

enum err_code view_create(struct arena *arena, const struct profile *profile,
                          const struct view_options *options, const struct view **ret_view,
                          struct err *err)
{
    struct view_source source = {.profile = profile, .side = VIEW_SIDE_B, .factor = 1};
    enum err_code code =
        profile_find_value_type(profile, options->sample_type, &source.value_type, err);
    if (code)
        return code;
    source.unit = profile_string(profile, profile->value_types[source.value_type].unit);
    struct view *view;
    code = view_create_from(arena, &source, 1, options, &view, err);
    if (code)
        return code;
    *ret_view = view;
    return ERR_NONE;
}
