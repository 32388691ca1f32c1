#include "lib/profile/report/raw_path.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/raw_name.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/frame_table.h"
#include "lib/profile/report/path_hash.h"
#include "lib/regex/regex.h"

#include <string.h>

/* The hashes of the old names of each location's frames, root side first; none for locations whose
 * names have not changed. */
struct old_names {
    const uint32_t *start;
    const struct path_hash *frames;
};

struct search {
    const struct view *view;
    uint64_t wanted;
    const struct path_hash *frames; /* current hashes */
    struct old_names old_names[VIEW_SIDE_COUNT];
};

static bool is_renamed(const struct profile_location *location)
{
    return location->is_named_later && location->mapping != PROFILE_NONE && location->address;
}

static bool has_renamed(const struct profile *profile)
{
    for (uint32_t i = 0; profile && i < profile->location_count; i++) {
        if (is_renamed(&profile->locations[i]))
            return true;
    }
    return false;
}

/* The name in a line from the sender; empty: it has none. */
static struct span sent_name(const struct profile *profile, uint32_t line)
{
    const uint32_t function = profile->lines[line].function;
    if (function == PROFILE_NONE)
        return span_of(NULL, 0);
    const struct profile_function *named = &profile->functions[function];
    return profile_string(profile, named->name ? named->name : named->system_name);
}

/* The number of names that the location was uploaded with; 0: it was one frame without a name. */
static uint32_t sent_name_count(const struct profile *profile, uint32_t location)
{
    const struct profile_location *sent = &profile->sent_locations[location];
    for (uint32_t i = 0; i < sent->line_count; i++) {
        if (sent_name(profile, sent->first_line + i).size)
            return sent->line_count;
    }
    return 0;
}

/* The number of frames that a renamed location had when it was uploaded. */
static uint32_t count_then(const struct profile *profile, uint32_t location)
{
    const uint32_t named = sent_name_count(profile, location);
    return named ? named : 1;
}

/* The old name of one of these frames, numbered from the root side on, as frame_table.c writes it.
 * The result borrows text or the profile. */
static struct span name_then(const struct profile *profile, uint32_t location, uint32_t number,
                             char text[RAW_NAME_BYTES])
{
    const struct profile_location *sent = &profile->sent_locations[location];
    struct span name = {0};
    if (sent->line_count)
        name = sent_name(profile, sent->first_line + sent->line_count - 1 - number);
    return name.size ? name : raw_name_write(profile, &profile->locations[location], text);
}

static enum err_code hash_locations(const struct view *view, const struct profile *profile,
                                    struct arena *arena, struct old_names *ret_names,
                                    struct err *err)
{
    size_t unchecked = 0;
    uint32_t *start = arena_new(arena, uint32_t, (size_t)profile->location_count + 1);
    for (uint32_t i = 0; i < profile->location_count; i++)
        start[i + 1] = start[i] + (is_renamed(&profile->locations[i]) ? count_then(profile, i) : 0);
    struct path_hash *hashes = arena_new(arena, struct path_hash, start[profile->location_count]);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        char text[RAW_NAME_BYTES];
        for (uint32_t j = start[i]; j < start[i + 1]; j++) {
            const struct frame frame = {.name = name_then(profile, i, j - start[i], text)};
            hashes[j] = path_hash_frame(&frame, view->group, PATH_HASH_OF_FRAMES);
            const enum err_code code = path_hash_check(view, &unchecked, 64 + frame.name.size, err);
            if (code)
                return code;
        }
    }
    *ret_names = (struct old_names){.start = start, .frames = hashes};
    return ERR_NONE;
}

/* Path hashes of a frame, in the old tree and in the current one. */
struct paths {
    struct path_hash old_names;
    struct path_hash now;
};

/* Extends the paths by a location, whose current frames are frames[0 .. count). True at the frame
 * whose old path is searched. Frames that are hidden now were hidden then, too. */
static bool find_in_location(const struct search *search, uint32_t side, uint32_t location,
                             const uint32_t *frames, uint32_t count, struct paths *paths)
{
    const struct old_names *old_names = &search->old_names[side];
    const uint32_t first = old_names->start[location],
                   renamed = old_names->start[location + 1] - first;
    const uint32_t then_count = renamed ? renamed : count;
    for (uint32_t i = 0; count && (i < count || i < then_count); i++) {
        if (i < count)
            paths->now = path_hash_child(paths->now, search->frames[frames[i]]);
        if (i >= then_count) /* an inlined call, which was not a frame then */
            continue;
        paths->old_names = path_hash_child(paths->old_names, renamed ? old_names->frames[first + i]
                                                                     : search->frames[frames[i]]);
        if (path_hash_u64(paths->old_names) == search->wanted)
            return true;
    }
    return false;
}

static bool find_in_stack(const struct search *search, uint32_t number, uint64_t *ret_now)
{
    const struct view *view = search->view;
    const uint32_t side = view->value_side[number], sample = view->samples[number];
    const struct profile *profile = view->profiles[side];
    const struct frame_lists *lists = view->lists[side];
    const uint32_t *entry = view->entries + view->stack_start[number],
                   *end = view->entries + view->stack_start[number + 1];
    struct paths paths = {0};
    bool is_found = false;
    if (view->group == VIEW_BY_LABEL && entry < end) {
        paths.old_names = paths.now = path_hash_child(paths.now, search->frames[*entry++]);
        is_found = path_hash_u64(paths.old_names) == search->wanted;
    }
    for (uint64_t i = profile->stack_start[sample + 1];
         !is_found && entry < end && i-- > profile->stack_start[sample];) {
        const uint32_t location = profile->stack[i];
        const uint32_t count = lists->start[location + 1] - lists->start[location];
        is_found = find_in_location(search, side, location, entry, count, &paths);
        entry += count;
    }
    *ret_now = path_hash_u64(paths.now);
    return is_found;
}

static bool shows_raw_names(const struct view *view)
{
    return view->group == VIEW_BY_FUNCTION || view->group == VIEW_BY_LINE ||
           view->group == VIEW_BY_LABEL;
}

bool raw_path_may_be(const struct view *view)
{
    bool is_any = false;
    for (int side = 0; side < VIEW_SIDE_COUNT; side++)
        is_any |= has_renamed(view->profiles[side]);
    /* Without cut stacks, the frames of a stack correspond to its locations. */
    return is_any && shows_raw_names(view) && !view->has_cut_stacks;
}

bool raw_path_has_sent_names(const struct view *view)
{
    bool is_any = false;
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        const struct profile *profile = view->profiles[side];
        for (uint32_t i = 0; profile && i < profile->location_count && !is_any; i++)
            is_any = is_renamed(&profile->locations[i]) && sent_name_count(profile, i);
    }
    /* frames correspond to locations */
    return is_any && shows_raw_names(view) && !view->has_cut_stacks;
}

static enum err_code not_found(struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "no node of the tree has that path");
}

static enum err_code hash_all(const struct view *view, uint64_t wanted, struct arena *arena,
                              struct search *ret_search, struct err *err)
{
    enum err_code code = ERR_NONE;
    *ret_search = (struct search){.view = view, .wanted = wanted};
    for (int side = 0; side < VIEW_SIDE_COUNT && !code; side++) {
        if (view->profiles[side])
            code = hash_locations(view, view->profiles[side], arena, &ret_search->old_names[side],
                                  err);
    }
    struct path_hash *frames = arena_new_raw(arena, struct path_hash, view->frame_count);
    if (!code)
        code = path_hash_frames(view, view->frames, view->frame_count, PATH_HASH_OF_FRAMES, frames,
                                err);
    ret_search->frames = frames;
    return code;
}

enum err_code raw_path_find(const struct view *view, uint64_t hash, uint64_t *ret_now,
                            struct err *err)
{
    arena_auto scratch = arena_create();
    if (view->without_chain)
        view = view->without_chain;
    if (!raw_path_may_be(view))
        return not_found(err);
    struct search search;
    enum err_code code = hash_all(view, hash, scratch, &search, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < view->stack_count; i++) {
        if (i % VIEW_CHECK_STEPS == 0 && view_check_cpu(view, err))
            return err->code;
        if (find_in_stack(&search, i, ret_now))
            return ERR_NONE;
    }
    return not_found(err);
}

/* ---- from a function ---- */

/* A frame of the old stack. */
struct step {
    struct path_hash old_names;
    uint32_t now; /* index of the corresponding frame in the current stack */
    bool is_renamed;
    bool is_function; /* a path may begin at it */
};

struct path_search {
    const struct search *search;
    enum raw_path_way way;
    const bool *is_function_then[VIEW_SIDE_COUNT]; /* per old frame */
    const bool *is_function;                       /* per frame */
    /* per frame: the first one with the same name */
    const uint32_t *first_of_name;
    const uint32_t *entries; /* of the stack */
    struct step *steps;
    uint32_t step_count;
    uint32_t step_capacity;
    uint64_t done; /* steps since the deadline was last checked */
};

static void add_step(struct path_search *path_search, struct step step)
{
    vec_reserve(path_search->steps, path_search->step_capacity, path_search->step_count + 1);
    path_search->steps[path_search->step_count++] = step;
}

static void add_location(struct path_search *path_search, uint32_t side, uint32_t location,
                         uint32_t position, uint32_t count)
{
    const struct old_names *old_names = &path_search->search->old_names[side];
    const uint32_t first = old_names->start[location],
                   renamed = old_names->start[location + 1] - first;
    for (uint32_t i = 0; i < (renamed ? renamed : count); i++) {
        const uint32_t now = position + (i < count ? i : count - 1),
                       frame = path_search->entries[now];
        add_step(path_search,
                 (struct step){.old_names = renamed ? old_names->frames[first + i]
                                                    : path_search->search->frames[frame],
                               .now = now,
                               .is_renamed = renamed != 0,
                               .is_function =
                                   path_search->is_function[frame] ||
                                   (renamed && path_search->is_function_then[side][first + i])});
    }
}

/* Lists the frames of the old stack, root side first. */
static void list_steps(struct path_search *path_search, uint32_t number)
{
    const struct view *view = path_search->search->view;
    const uint32_t side = view->value_side[number], sample = view->samples[number];
    const struct profile *profile = view->profiles[side];
    const struct frame_lists *lists = view->lists[side];
    const uint32_t end = (uint32_t)(view->stack_start[number + 1] - view->stack_start[number]);
    uint32_t position = 0;
    path_search->entries = view->entries + view->stack_start[number];
    path_search->step_count = 0;
    if (view->group == VIEW_BY_LABEL && end)
        add_step(path_search,
                 (struct step){.old_names =
                                   path_search->search->frames[path_search->entries[position++]]});
    for (uint64_t i = profile->stack_start[sample + 1];
         position < end && i-- > profile->stack_start[sample];) {
        const uint32_t location = profile->stack[i];
        const uint32_t count = lists->start[location + 1] - lists->start[location];
        if (count)
            add_location(path_search, side, location, position, count);
        position += count;
    }
}

/* The current hash of the path between two frames of the stack. */
static uint64_t path_now(const struct path_search *path_search, uint32_t from, uint32_t to)
{
    const struct path_hash *frames = path_search->search->frames;
    struct path_hash path = path_hash_child(
        (struct path_hash){0}, frames[path_search->first_of_name[path_search->entries[from]]]);
    while (from != to) {
        from = path_search->way == RAW_PATH_BELOW ? from + 1 : from - 1;
        path = path_hash_child(path, frames[path_search->entries[from]]);
    }
    return path_hash_u64(path);
}

static bool find_from(struct path_search *path_search, uint32_t start, uint64_t *ret_now)
{
    const struct step *steps = path_search->steps, *function = &steps[start];
    const uint32_t last = path_search->way == RAW_PATH_BELOW ? path_search->step_count - 1 : 0;
    const uint32_t frame = path_search->entries[function->now];
    struct path_hash old_names = path_hash_child(
        (struct path_hash){0},
        function->is_renamed ? function->old_names
                             : path_search->search->frames[path_search->first_of_name[frame]]);
    uint32_t at = start;
    for (; path_hash_u64(old_names) != path_search->search->wanted; path_search->done++) {
        if (at == last)
            return false;
        at = path_search->way == RAW_PATH_BELOW ? at + 1 : at - 1;
        old_names = path_hash_child(old_names, steps[at].old_names);
    }
    *ret_now = path_now(path_search, function->now, steps[at].now);
    return true;
}

static enum err_code scan_stacks(struct path_search *path_search, uint64_t *ret_now,
                                 struct err *err)
{
    const struct view *view = path_search->search->view;
    for (uint32_t i = 0; i < view->stack_count; i++) {
        list_steps(path_search, i);
        path_search->done += path_search->step_count + 1;
        for (uint32_t start = 0; start < path_search->step_count; start++) {
            if (path_search->steps[start].is_function && find_from(path_search, start, ret_now))
                return ERR_NONE;
            if (path_search->done >= VIEW_CHECK_STEPS && view_check_cpu(view, err))
                return err->code;
            path_search->done %= VIEW_CHECK_STEPS;
        }
    }
    return not_found(err);
}

/* Marks the frames, and the old frames, that the expression matches. */
static enum err_code mark_functions(const struct search *search, struct regex *regex,
                                    bool *is_function, bool *is_function_then[VIEW_SIDE_COUNT],
                                    struct err *err)
{
    const struct view *view = search->view;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < view->frame_count && !code; i++)
        code = is_function[i] ? ERR_NONE
                              : regex_match(regex, view->frames[i].name, &is_function[i], err);
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        const struct profile *profile = view->profiles[side];
        const uint32_t *start = search->old_names[side].start;
        for (uint32_t i = 0; profile && i < profile->location_count && !code; i++) {
            for (uint32_t j = start[i]; j < start[i + 1] && !code; j++) {
                char text[RAW_NAME_BYTES];
                bool is_match = false;
                code =
                    regex_match(regex, name_then(profile, i, j - start[i], text), &is_match, err);
                is_function_then[side][j] |= is_match;
            }
        }
    }
    return code;
}

static const uint32_t *list_first_of_names(const struct view *view, struct arena *arena)
{
    uint32_t *first = arena_new(arena, uint32_t, view->frame_count);
    struct map_bytes known;
    map_bytes_init(&known, view->frame_count);
    for (uint32_t i = VIEW_ROOT_FRAME + 1; i < view->frame_count; i++)
        first[i] = map_bytes_add(&known, view->frames[i].name, i);
    map_bytes_fini(&known);
    return first;
}

enum err_code raw_path_find_from(const struct view *view, enum raw_path_way way,
                                 const struct filter_rule *rules, size_t rule_count, uint64_t hash,
                                 uint64_t *ret_now, struct err *err)
{
    arena_auto scratch = arena_create();
    enum err_code code = ERR_NONE;
    if (!raw_path_may_be(view))
        return not_found(err);
    struct search search;
    code = hash_all(view, hash, scratch, &search, err);
    if (code)
        return code;
    bool *is_function = arena_new(scratch, bool, view->frame_count);
    bool *is_function_then[VIEW_SIDE_COUNT] = {0};
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        const struct profile *profile = view->profiles[side];
        if (profile)
            is_function_then[side] =
                arena_new(scratch, bool, search.old_names[side].start[profile->location_count]);
    }
    for (size_t i = 0; i < rule_count && !code; i++) {
        struct regex *regex = NULL;
        if (rules[i].action != FILTER_FOCUS)
            continue;
        code = regex_create(rules[i].pattern, &regex, err);
        if (!code)
            code = mark_functions(&search, regex, is_function, is_function_then, err);
        regex_destroy(regex);
    }
    struct path_search path_search = {.search = &search,
                                      .way = way,
                                      .is_function = is_function,
                                      .first_of_name = list_first_of_names(view, scratch)};
    for (int side = 0; side < VIEW_SIDE_COUNT; side++)
        path_search.is_function_then[side] = is_function_then[side];
    if (!code)
        code = scan_stacks(&path_search, ret_now, err);
    mem_free(path_search.steps);
    return code;
}

/* ---- names ---- */

struct names {
    struct map_bytes known;
    uint32_t count;
    bool is_more;
    struct buf *json;
};

static void add_name(struct names *names, struct span name)
{
    if (map_bytes_find(&names->known, name) != MAP_ABSENT)
        return;
    if (names->count == RAW_PATH_NAMES_MAX) {
        names->is_more = true;
        return;
    }
    map_bytes_add(&names->known, name, names->count);
    if (names->count++)
        buf_append_byte(names->json, ',');
    buf_append_json(names->json, name);
}

/* Adds the names of one location, which has at least one current frame. */
static enum err_code add_names_of(const struct view *view, enum view_side side, uint32_t location,
                                  struct regex *regex, struct names *names, struct err *err)
{
    const struct frame_lists *lists = view->lists[side];
    const uint32_t *now = lists->frames + lists->start[location];
    const uint32_t last = lists->start[location + 1] - lists->start[location] - 1;
    const uint32_t then_count = count_then(view->profiles[side], location);
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < then_count && !code; i++) {
        char text[RAW_NAME_BYTES];
        bool is_match = false;
        code =
            regex_match(regex, name_then(view->profiles[side], location, i, text), &is_match, err);
        if (is_match)
            add_name(names, view->frames[now[i < last ? i : last]].name);
    }
    return code;
}

static enum err_code add_names(const struct view *view, enum view_side side, bool is_of_addresses,
                               struct regex *regex, struct names *names, struct err *err)
{
    const struct profile *profile = view->profiles[side];
    const uint32_t *start = view->lists[side]->start;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < profile->location_count && !names->is_more && !code; i++) {
        if (!is_renamed(&profile->locations[i]) || start[i] == start[i + 1])
            continue;
        if (is_of_addresses || sent_name_count(profile, i))
            code = add_names_of(view, side, i, regex, names, err);
    }
    return code;
}

enum err_code raw_path_list_names(const struct view *view, const struct filter_rule *rules,
                                  size_t rule_count, struct buf *json, bool *ret_is_more,
                                  struct err *err)
{
    struct names names = {.json = json};
    enum err_code code = ERR_NONE;
    map_bytes_init(&names.known, 0);
    buf_append_byte(json, '[');
    for (size_t i = 0; i < rule_count && !code && shows_raw_names(view); i++) {
        struct regex *regex = NULL;
        if (rules[i].action != FILTER_FOCUS)
            continue;
        const bool is_of_addresses = filter_is_of_addresses(rules[i].pattern);
        code = regex_create(rules[i].pattern, &regex, err);
        for (int side = 0; side < VIEW_SIDE_COUNT && !code; side++) {
            if (view->profiles[side])
                code = add_names(view, (enum view_side)side, is_of_addresses, regex, &names, err);
        }
        regex_destroy(regex);
    }
    buf_append_byte(json, ']');
    map_bytes_fini(&names.known);
    *ret_is_more = names.is_more;
    return code;
}
