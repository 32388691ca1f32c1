#include "api/share/source_link_matcher.h"

#include "api/debuginfo/build_id.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/profile/profile.h"

#include <string.h>

/* Steps between two looks at is_cancelled: a few milliseconds. */
enum { CHECK_STEPS = 1 << 20 };

/* The states of a string of the profile for one pattern. A string may be a build id and a file. */
enum { ID_COMPARED = 1, ID_MATCHES = 2, FILE_SELECTED = 4 };

struct source_link_matcher {
    const struct profile *profile;
    uint8_t *states; /* by string; NULL until the first pattern */
    uint32_t next_mapping;
    uint64_t steps;
    uint64_t max_steps;
    uint64_t checked_steps; /* is_cancelled was read then */
    const atomic_bool *is_cancelled;
    struct arena *arena;
};

struct source_link_matcher *source_link_matcher_create(struct arena *arena,
                                                       const struct profile *profile,
                                                       uint64_t max_steps,
                                                       const atomic_bool *is_cancelled)
{
    struct source_link_matcher *matcher = arena_new(arena, struct source_link_matcher, 1);
    *matcher = (struct source_link_matcher){
        .profile = profile, .max_steps = max_steps, .is_cancelled = is_cancelled, .arena = arena};
    return matcher;
}

static enum err_code check_steps(struct source_link_matcher *matcher, struct err *err)
{
    if (matcher->steps > matcher->max_steps)
        return err_set(err, ERR_TOO_LARGE,
                       "comparing the team's source links with this profile takes too long: remove "
                       "rules, or write build ids with fewer wildcards");
    if (matcher->steps - matcher->checked_steps < CHECK_STEPS)
        return ERR_NONE;
    matcher->checked_steps = matcher->steps;
    if (matcher->is_cancelled && atomic_load_explicit(matcher->is_cancelled, memory_order_relaxed))
        return err_set(err, ERR_CANCELLED, "the client has gone: send the request again");
    return ERR_NONE;
}

/* ---- labels ---- */

/* The strings of the rules' labels as numbers of the profile's strings. */
struct label_strings {
    struct map_bytes numbers; /* text of a rule -> index in strings */
    uint32_t *strings;        /* PROFILE_NONE: the profile does not contain the text */
};

static void split_label(struct span label, struct span *ret_key, struct span *ret_text)
{
    const uint8_t *equals = memchr(label.data, '=', label.size);
    const size_t key_size = equals ? (size_t)(equals - label.data) : label.size;
    const size_t skipped = equals ? key_size + 1 : key_size;
    *ret_key = span_of(label.data, key_size);
    *ret_text = span_of(label.data + skipped, label.size - skipped);
}

static uint32_t string_of(const struct label_strings *strings, struct span text)
{
    const uint32_t index = map_bytes_find(&strings->numbers, text);
    return index == MAP_ABSENT ? PROFILE_NONE : strings->strings[index];
}

static enum err_code find_strings(struct source_link_matcher *matcher, const struct span *labels,
                                  uint32_t count, struct label_strings *strings, struct err *err)
{
    const struct profile *profile = matcher->profile;
    strings->strings = arena_new(matcher->arena, uint32_t, 2 * (size_t)count);
    for (uint32_t i = 0; i < count; i++) {
        struct span parts[2];
        split_label(labels[i], &parts[0], &parts[1]);
        for (uint32_t part = 0; part < 2; part++) {
            map_bytes_add(&strings->numbers, parts[part], 2 * i + part);
            strings->strings[2 * i + part] = PROFILE_NONE;
        }
    }
    for (uint32_t i = 0; i < profile->string_count; i++) {
        const uint32_t index = map_bytes_find(&strings->numbers, profile_string(profile, i));
        if (index != MAP_ABSENT)
            strings->strings[index] = i;
        matcher->steps++;
        if (check_steps(matcher, err))
            return err->code;
    }
    return ERR_NONE;
}

static uint64_t pair_of(uint32_t key, uint32_t text)
{
    return (uint64_t)key << 32 | text;
}

/* Sets has[i] of the first rule with each label. */
static enum err_code scan_labels(struct source_link_matcher *matcher, const struct map_u64 *pairs,
                                 bool *has, struct err *err)
{
    const struct profile *profile = matcher->profile;
    const uint32_t count = profile->sample_count ? profile->label_start[profile->sample_count] : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_label *label = &profile->labels[i];
        const uint32_t index =
            label->is_numeric ? MAP_ABSENT : map_u64_find(pairs, pair_of(label->key, label->text));
        if (index != MAP_ABSENT)
            has[index] = true;
        matcher->steps++;
        if (check_steps(matcher, err))
            return err->code;
    }
    return ERR_NONE;
}

enum err_code source_link_matcher_find_labels(struct source_link_matcher *matcher,
                                              const struct span *labels, uint32_t count,
                                              bool *ret_has, struct err *err)
{
    struct label_strings strings = {0};
    struct map_u64 pairs = {0};
    uint32_t *firsts = arena_new(matcher->arena, uint32_t, count);
    enum err_code code = find_strings(matcher, labels, count, &strings, err);
    for (uint32_t i = 0; !code && i < count; i++) {
        struct span key, text;
        split_label(labels[i], &key, &text);
        firsts[i] =
            map_u64_add(&pairs, pair_of(string_of(&strings, key), string_of(&strings, text)), i);
        ret_has[i] = false;
    }
    if (!code)
        code = scan_labels(matcher, &pairs, ret_has, err);
    for (uint32_t i = 0; !code && i < count; i++)
        ret_has[i] = ret_has[firsts[i]];
    map_u64_fini(&pairs);
    map_bytes_fini(&strings.numbers);
    return code;
}

/* ---- build ids ---- */

bool source_link_matcher_is_match(struct span pattern, struct span text, uint64_t *steps)
{
    size_t at = 0, in = 0, star = SIZE_MAX, resume = 0;
    for (; in < text.size; ++*steps) {
        if (at < pattern.size && pattern.data[at] == '*') {
            star = at++;
            resume = in;
        } else if (at < pattern.size &&
                   (pattern.data[at] == '?' || pattern.data[at] == text.data[in])) {
            at++;
            in++;
        } else if (star != SIZE_MAX) { /* let the last star match one more byte */
            at = star + 1;
            in = ++resume;
        } else {
            return false;
        }
    }
    while (at < pattern.size && pattern.data[at] == '*')
        at++;
    return at == pattern.size;
}

static bool is_match(struct source_link_matcher *matcher, struct span pattern, struct span build_id)
{
    char id[BUILD_ID_BYTES];
    if (!build_id_normalize(build_id, id))
        return false;
    matcher->steps += build_id.size;
    return source_link_matcher_is_match(pattern, build_id, &matcher->steps) ||
           source_link_matcher_is_match(pattern, span_text(id), &matcher->steps);
}

static bool is_binary(const struct profile_mapping *mapping)
{
    return mapping->build_id != 0 && mapping->filename != 0;
}

/* Forgets the states of the pattern before. */
static void begin_pattern(struct source_link_matcher *matcher)
{
    const struct profile *profile = matcher->profile;
    if (!matcher->states)
        matcher->states = arena_new(matcher->arena, uint8_t, profile->string_count);
    for (uint32_t i = 0; i < profile->mapping_count; i++) {
        matcher->states[profile->mappings[i].build_id] = 0;
        matcher->states[profile->mappings[i].filename] = 0;
    }
    matcher->steps += profile->mapping_count;
    matcher->next_mapping = 0;
}

enum err_code source_link_matcher_find_files(struct source_link_matcher *matcher,
                                             struct span pattern, bool *ret_has_any,
                                             struct err *err)
{
    const struct profile *profile = matcher->profile;
    begin_pattern(matcher);
    *ret_has_any = false;
    for (uint32_t i = 0; i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        uint8_t *id = &matcher->states[mapping->build_id];
        if (check_steps(matcher, err))
            return err->code;
        if (!is_binary(mapping))
            continue;
        if (!(*id & ID_COMPARED))
            *id |= is_match(matcher, pattern, profile_string(profile, mapping->build_id))
                       ? ID_COMPARED | ID_MATCHES
                       : ID_COMPARED;
        if (*id & ID_MATCHES) {
            matcher->states[mapping->filename] |= FILE_SELECTED;
            *ret_has_any = true;
        }
    }
    return ERR_NONE;
}

bool source_link_matcher_next_file(struct source_link_matcher *matcher, struct span *ret_file)
{
    const struct profile *profile = matcher->profile;
    while (matcher->next_mapping < profile->mapping_count) {
        const uint32_t file = profile->mappings[matcher->next_mapping++].filename;
        if (!(matcher->states[file] & FILE_SELECTED))
            continue;
        matcher->states[file] &= (uint8_t)~FILE_SELECTED;
        *ret_file = profile_string(profile, file);
        return true;
    }
    return false;
}
