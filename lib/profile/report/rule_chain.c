#include "lib/profile/report/rule_chain.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/report/rule_preset.h"
#include "lib/regex/regex.h"

#include <string.h>

/* The stacks after the previous rules. They are overwritten in place, since rules only shorten
 * them. */
struct stacks {
    const struct view *view;
    struct arena *scratch;
    uint64_t *start;
    uint64_t *end;
    uint32_t *entries;
    uint8_t *is_kept;
    uint8_t *matches; /* per frame: whether the current rule matches it */
    uint32_t *seen;   /* per frame: 1 if it is in the current stack already, see drop_recursion */
};

const char *chain_action_name(enum chain_action action)
{
    static const char *const names[] = {"focus", "ignore",    "hide", "show",
                                        "merge", "recursion", "only"};
    return names[action];
}

static bool is_expression(struct span pattern)
{
    struct regex *regex;
    struct err ignored;
    if (regex_create(pattern, &regex, &ignored))
        return false;
    regex_destroy(regex);
    return true;
}

bool chain_rule_is_known(const struct chain_rule *rule)
{
    if (rule->action == CHAIN_ONLY)
        return rule_preset_find(rule->text) != NULL;
    return rule->text.size == 0 || is_expression(rule->text);
}

/* ---- which frames a rule matches ---- */

/* Caches the last match: adjacent frames usually have the same file and binary. */
struct last_match {
    struct span text;
    bool is_match;
};

static enum err_code match_repeated(struct regex *regex, struct span text, struct last_match *last,
                                    bool *ret_is_match, struct err *err)
{
    enum err_code code = ERR_NONE;
    if (text.size == 0)
        return ERR_NONE;
    if (text.data != last->text.data || text.size != last->text.size) {
        code = regex_match(regex, text, &last->is_match, err);
        last->text = text;
    }
    *ret_is_match |= last->is_match;
    return code;
}

/* Sets *ret_is_match, which is false, if the frame's name, file or binary matches. */
static enum err_code match_frame(struct regex *regex, const struct frame *frame,
                                 struct last_match *file, struct last_match *mapping,
                                 bool *ret_is_match, struct err *err)
{
    enum err_code code = ERR_NONE;
    if (frame->name.size)
        code = regex_match(regex, frame->name, ret_is_match, err);
    if (code || *ret_is_match)
        return code;
    code = match_repeated(regex, frame->file, file, ret_is_match, err);
    if (code || *ret_is_match)
        return code;
    return match_repeated(regex, frame->mapping, mapping, ret_is_match, err);
}

static enum err_code match_expression(struct stacks *stacks, struct span pattern, struct err *err)
{
    const struct view *view = stacks->view;
    struct last_match file = {0}, mapping = {0};
    struct regex *regex;
    enum err_code code = regex_create(pattern, &regex, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < view->frame_count && !code; i++) {
        const struct frame *frame = &view->frames[i];
        bool is_match = stacks->matches[i];
        if (i % VIEW_CHECK_STEPS == 0)
            code = view_check_cpu(view, err);
        if (!code && !is_match)
            code = match_frame(regex, frame, &file, &mapping, &is_match, err);
        stacks->matches[i] = is_match;
    }
    regex_destroy(regex);
    return code;
}

static enum err_code match_preset(struct stacks *stacks, struct span name, struct err *err)
{
    const struct rule_preset *preset = rule_preset_find(name);
    enum err_code code = ERR_NONE;
    if (!preset)
        return err_set(err, ERR_INVALID, "no such preset");
    for (const char *const *hides = preset->hides; *hides && !code; hides++)
        code = match_expression(stacks, span_text(*hides), err);
    for (uint32_t i = 0; preset->hides_kernel && i < stacks->view->frame_count; i++)
        stacks->matches[i] |= (stacks->view->frames[i].flags & FRAME_KERNEL) != 0;
    return code;
}

static enum err_code match_frames(struct stacks *stacks, const struct chain_rule *rule,
                                  struct err *err)
{
    memset(stacks->matches, rule->text.size == 0, stacks->view->frame_count);
    if (rule->text.size == 0)
        return ERR_NONE;
    return rule->action == CHAIN_ONLY ? match_preset(stacks, rule->text, err)
                                      : match_expression(stacks, rule->text, err);
}

/* ---- applying a rule to a stack ---- */

static bool has_match(const struct stacks *stacks, uint32_t stack)
{
    for (uint64_t i = stacks->start[stack]; i < stacks->end[stack]; i++) {
        if (stacks->matches[stacks->entries[i]])
            return true;
    }
    return false;
}

/* Removes the frames that match, or with hidden false the others. */
static void drop_frames(struct stacks *stacks, uint32_t stack, bool hidden)
{
    uint64_t to = stacks->start[stack];
    for (uint64_t i = to; i < stacks->end[stack]; i++) {
        if (stacks->matches[stacks->entries[i]] != hidden)
            stacks->entries[to++] = stacks->entries[i];
    }
    stacks->end[stack] = to;
}

/* Removes everything that the first matching frame calls. */
static void cut_callees(struct stacks *stacks, uint32_t stack)
{
    for (uint64_t i = stacks->start[stack]; i < stacks->end[stack]; i++) {
        if (stacks->matches[stacks->entries[i]])
            stacks->end[stack] = i + 1;
    }
}

/* Removes recursive frames: if a matching frame is in the stack already, the stack is cut back to
 * it. seen is 1 for matching frames of the stack so far, and 0 for all at the end. */
static void drop_recursion(struct stacks *stacks, uint32_t stack)
{
    const uint64_t start = stacks->start[stack];
    uint64_t to = start;
    for (uint64_t i = start; i < stacks->end[stack]; i++) {
        const uint32_t frame = stacks->entries[i];
        if (!stacks->matches[frame] || !stacks->seen[frame]) {
            stacks->seen[frame] += stacks->matches[frame];
            stacks->entries[to++] = frame;
            continue;
        }
        while (stacks->entries[to - 1] != frame)
            stacks->seen[stacks->entries[--to]] = 0;
    }
    stacks->end[stack] = to;
    for (uint64_t i = start; i < to; i++)
        stacks->seen[stacks->entries[i]] = 0;
}

static void apply_to_stack(struct stacks *stacks, enum chain_action action, uint32_t stack)
{
    const bool was_empty = stacks->start[stack] == stacks->end[stack];
    switch (action) {
    case CHAIN_FOCUS:
        stacks->is_kept[stack] = has_match(stacks, stack);
        break;
    case CHAIN_IGNORE:
        stacks->is_kept[stack] = !was_empty && !has_match(stacks, stack);
        break;
    case CHAIN_HIDE:
    case CHAIN_ONLY:
    case CHAIN_SHOW:
        drop_frames(stacks, stack, action != CHAIN_SHOW);
        stacks->is_kept[stack] = stacks->start[stack] < stacks->end[stack];
        break;
    case CHAIN_MERGE:
        cut_callees(stacks, stack);
        break;
    case CHAIN_RECURSION:
        drop_recursion(stacks, stack);
        break;
    }
}

static enum err_code apply(struct stacks *stacks, const struct chain_rule *rule, struct err *err)
{
    enum err_code code = match_frames(stacks, rule, err);
    for (uint32_t i = 0; i < stacks->view->stack_count && !code; i++) {
        if (i % VIEW_CHECK_STEPS == 0)
            code = view_check_cpu(stacks->view, err);
        if (stacks->is_kept[i])
            apply_to_stack(stacks, rule->action, i);
    }
    return code ? err_add(err, "%s", chain_action_name(rule->action)) : ERR_NONE;
}

/* ---- all rules ---- */

enum err_code rule_chain_find_nameless(const struct view *view, const struct chain_rule *rules,
                                       size_t rule_count, bool *ret_nameless, struct err *err)
{
    arena_auto scratch = arena_create();
    const uint64_t entry_count = view->stack_count ? view->stack_start[view->stack_count] : 0;
    struct stacks stacks = {.view = view,
                            .scratch = scratch,
                            .matches = arena_new(scratch, uint8_t, view->frame_count)};
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < rule_count && !code; i++) {
        code = match_frames(&stacks, &rules[i], err);
        ret_nameless[i] = true;
        for (uint64_t at = 0; at < entry_count && ret_nameless[i]; at++)
            ret_nameless[i] = !stacks.matches[view->entries[at]];
    }
    return code;
}

static struct stacks copy_stacks(struct arena *arena, struct arena *scratch,
                                 const struct view *view)
{
    const uint32_t count = view->stack_count;
    const uint64_t entry_count = count ? view->stack_start[count] : 0;
    struct stacks stacks = {.view = view, .scratch = scratch};
    stacks.start = arena_new_raw(scratch, uint64_t, count);
    stacks.end = arena_new_raw(scratch, uint64_t, count);
    stacks.is_kept = arena_new_raw(scratch, uint8_t, count);
    stacks.matches = arena_new(scratch, uint8_t, view->frame_count);
    stacks.seen = arena_new(scratch, uint32_t, view->frame_count);
    stacks.entries = arena_new_raw(arena, uint32_t, (size_t)entry_count);
    if (count) {
        memcpy(stacks.start, view->stack_start, count * sizeof(uint64_t));
        memcpy(stacks.end, view->stack_start + 1, count * sizeof(uint64_t));
        memcpy(stacks.entries, view->entries, (size_t)entry_count * sizeof(uint32_t));
        memset(stacks.is_kept, 1, count);
    }
    return stacks;
}

/* Makes the view, without gaps between stacks; the entries stay in place. */
static const struct view *make_view(struct arena *arena, const struct stacks *stacks)
{
    const struct view *from = stacks->view;
    struct view *view = arena_new(arena, struct view, 1);
    uint64_t *start = arena_new_raw(arena, uint64_t, (size_t)from->stack_count + 1);
    uint32_t *side = arena_new_raw(arena, uint32_t, from->stack_count);
    int64_t *values = arena_new_raw(arena, int64_t, from->stack_count);
    uint32_t *samples = arena_new_raw(arena, uint32_t, from->stack_count);
    uint64_t to = 0;
    *view = *from;
    view->stack_count = 0;
    memset(view->kept, 0, sizeof(view->kept));
    start[0] = 0;
    for (uint32_t i = 0; i < from->stack_count; i++) {
        if (!stacks->is_kept[i])
            continue;
        const uint32_t stack = view->stack_count++;
        const uint64_t size = stacks->end[i] - stacks->start[i];
        memmove(stacks->entries + to, stacks->entries + stacks->start[i], size * sizeof(uint32_t));
        to += size;
        start[stack + 1] = to;
        side[stack] = from->value_side[i];
        values[stack] = from->values[i];
        samples[stack] = from->samples[i];
        view->kept[side[stack]] = view_add(view->kept[side[stack]], values[stack]);
    }
    view_scale_sums(view, view->kept);
    view->stack_start = start;
    view->entries = stacks->entries;
    view->value_side = side;
    view->values = values;
    view->samples = samples;
    view->without_chain = from;
    return view;
}

enum err_code rule_chain_apply(struct arena *arena, const struct view *view,
                               const struct chain_rule *rules, size_t rule_count,
                               const struct view **ret_view, struct err *err)
{
    arena_auto scratch = arena_create();
    struct stacks stacks = copy_stacks(arena, scratch, view);
    for (size_t i = 0; i < rule_count; i++) {
        enum err_code code = apply(&stacks, &rules[i], err);
        if (code)
            return code;
    }
    *ret_view = make_view(arena, &stacks);
    return ERR_NONE;
}
