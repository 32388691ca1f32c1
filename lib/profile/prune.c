#include "lib/profile/prune.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/regex/regex.h"

/* A location with an uninteresting name. BENEATH: what the location calls is removed. WHOLE: and so
 * is the location, because the name is that of its last line, so none of its lines is left. */
enum { MARK_WHOLE = 1, MARK_BENEATH = 2 };

struct matcher {
    const struct profile *profile;
    struct regex *drop;
    struct regex *keep; /* or NULL */
    uint8_t *known;     /* per string: RESULT_* */
    bool has_failed;
};
enum { RESULT_UNKNOWN, RESULT_KEPT, RESULT_DROPPED };

/* The name up to its first "(", unless that belongs to the name itself. */
static struct span simplify_name(struct span name)
{
    static const char *const reserved[] = {"(anonymous namespace)", "operator()"};
    if (name.size && name.data[0] == '.')
        name = span_of(name.data + 1, name.size - 1);
    for (size_t i = 0; i < name.size; i++) {
        struct span rest = span_of(name.data + i, name.size - i);
        size_t skip = 0;
        for (size_t j = 0; j < 2 && !skip; j++)
            skip = span_starts_with(rest, reserved[j]) ? strlen(reserved[j]) : 0;
        if (skip)
            i += skip - 1;
        else if (name.data[i] == '(')
            return span_of(name.data, i);
    }
    return name;
}

static bool is_uninteresting(struct matcher *matcher, uint32_t string)
{
    if (matcher->known[string] != RESULT_UNKNOWN || matcher->has_failed)
        return matcher->known[string] == RESULT_DROPPED;
    struct span name = simplify_name(profile_string(matcher->profile, string));
    struct err err;
    bool is_dropped = false, is_kept = false;
    if (regex_match(matcher->drop, name, &is_dropped, &err))
        matcher->has_failed = true;
    else if (is_dropped && matcher->keep && regex_match(matcher->keep, name, &is_kept, &err))
        matcher->has_failed = true;
    matcher->known[string] = is_dropped && !is_kept ? RESULT_DROPPED : RESULT_KEPT;
    return matcher->known[string] == RESULT_DROPPED;
}

/* Looks at the lines from the outermost call to the innermost. */
static void mark_location(struct matcher *matcher, const struct profile_location *location,
                          uint32_t *first_line, uint8_t *mark)
{
    uint32_t end = location->first_line + location->line_count;
    for (uint32_t i = end; i-- > location->first_line;) {
        uint32_t function = matcher->profile->lines[i].function;
        uint32_t name = function == PROFILE_NONE ? 0 : matcher->profile->functions[function].name;
        if (name == 0 || !is_uninteresting(matcher, name))
            continue;
        *mark = i + 1 == end ? MARK_WHOLE | MARK_BENEATH : MARK_BENEATH;
        if (i + 1 != end)
            *first_line = i + 1;
        return;
    }
}

static struct regex *compile_whole(struct arena *scratch, struct span pattern, uint32_t cpu_ms)
{
    struct regex *regex;
    struct err err;
    const char *whole = arena_printf(scratch, "^(%.*s)$", SPAN_PRINT(pattern));
    if (regex_create(span_text(whole), &regex, &err))
        return NULL;
    regex_limit_cpu(regex, cpu_ms);
    return regex;
}

static const uint32_t *all_first_lines(struct arena *arena, const struct profile *profile)
{
    uint32_t *first_line = arena_new_raw(arena, uint32_t, profile->location_count);
    for (uint32_t i = 0; i < profile->location_count; i++)
        first_line[i] = profile->locations[i].first_line;
    return first_line;
}

static void mark_all(struct arena *arena, struct matcher *matcher, struct prune *prune)
{
    const struct profile *profile = matcher->profile;
    uint32_t *first_line = arena_new_raw(arena, uint32_t, profile->location_count);
    uint8_t *marks = arena_new(arena, uint8_t, profile->location_count);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        first_line[i] = profile->locations[i].first_line;
        mark_location(matcher, &profile->locations[i], &first_line[i], &marks[i]);
    }
    prune->has_failed = matcher->has_failed;
    if (!matcher->has_failed) {
        prune->first_line = first_line;
        prune->marks = marks;
    }
}

void prune_create(struct arena *arena, const struct profile *profile, uint32_t cpu_ms,
                  struct prune *ret_prune)
{
    arena_auto scratch = arena_create();
    *ret_prune = (struct prune){.first_line = all_first_lines(arena, profile)};
    if (profile->drop_frames == 0)
        return;
    struct matcher matcher = {.profile = profile};
    matcher.known = arena_new(scratch, uint8_t, profile->string_count);
    matcher.drop = compile_whole(scratch, profile_string(profile, profile->drop_frames), cpu_ms);
    if (profile->keep_frames)
        matcher.keep =
            compile_whole(scratch, profile_string(profile, profile->keep_frames), cpu_ms);
    if (!matcher.drop || (profile->keep_frames && !matcher.keep))
        ret_prune->has_failed = true;
    else
        mark_all(arena, &matcher, ret_prune);
    regex_destroy(matcher.drop);
    regex_destroy(matcher.keep);
}

size_t prune_stack(const struct prune *prune, const uint32_t *stack, size_t depth)
{
    bool found_user = false;
    for (size_t i = depth; prune->marks && i-- > 0;) {
        uint8_t mark = prune->marks[stack[i]];
        if (!mark)
            found_user = true;
        else if (found_user)
            return mark & MARK_WHOLE ? i + 1 : i;
    }
    return 0;
}
