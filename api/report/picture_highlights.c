#include "api/report/picture_highlights.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/quantity.h"
#include "lib/profile/report/flame.h"
#include "lib/regex/regex.h"

#include <string.h>

/* Whether text has an upper-case letter that is not part of an escape such as \W. */
static bool has_upper(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\\')
            i++;
        else if (text.data[i] >= 'A' && text.data[i] <= 'Z')
            return true;
    }
    return false;
}

/* Whether the page wrote a name as an expression (web/src/model/search/escape_regex.ts); it then
 * matches exactly that name. */
static bool is_exact_name(struct span text)
{
    static const char special[] = "\\^$.*+?()[]{}|/";
    if (text.size < 2 || text.data[0] != '^' || text.data[text.size - 1] != '$')
        return false;
    for (size_t i = 1; i + 1 < text.size; i++) {
        const bool is_escape = text.data[i] == '\\' && i + 2 < text.size;
        i += is_escape;
        if (is_escape != (memchr(special, text.data[i], sizeof(special) - 1) != NULL))
            return false;
    }
    return true;
}

static bool compile_search(struct arena *arena, struct span search, struct regex **ret_regex)
{
    struct err ignored;
    const bool is_exact =
        has_upper(search) || is_exact_name(search) || span_starts_with(search, "(?i)");
    const char *pattern = arena_printf(arena, "%s%.*s", is_exact ? "" : "(?i)", SPAN_PRINT(search));
    return search.size > 0 && !memchr(search.data, '\0', search.size) &&
           !regex_create(span_text(pattern), ret_regex, &ignored);
}

/* False if the expression is too costly for these names. */
static bool match_frames(const struct flame *flame, struct regex *regex, uint8_t *matches)
{
    struct err ignored;
    for (uint32_t i = 0; i < flame->frame_count; i++) {
        bool is_match = false;
        if (i != flame->node_frame[0] &&
            regex_match(regex, flame->frames[i].name, &is_match, &ignored))
            return false;
        matches[i] = is_match;
    }
    return true;
}

/* Sums the outermost matches, so that recursion counts once; a parent precedes its children. */
static double share_of(const struct flame *flame, const uint8_t *matches)
{
    uint8_t *is_inside = mem_new(uint8_t, flame->node_count);
    double value = 0, total = (double)flame->view->total[VIEW_SIDE_B];
    for (uint32_t i = 1; i < flame->node_count; i++) {
        const uint8_t above = is_inside[flame->node_parent[i]];
        is_inside[i] = above | matches[flame->node_frame[i]];
        if (is_inside[i] && !above)
            value += (double)flame->node_cum[i];
    }
    mem_free(is_inside);
    return total != 0 ? 100 * value / total : 0;
}

static struct span describe_share(struct arena *arena, const struct flame *flame,
                                  struct span search, const uint8_t *matches)
{
    enum { SHOWN_BYTES = 100 };
    char share[QUANTITY_TEXT_BYTES];
    size_t size = search.size < SHOWN_BYTES ? search.size : SHOWN_BYTES;
    while (size < search.size && size && (search.data[size] & 0xc0) == 0x80)
        size--; /* not within a character */
    return span_text(arena_printf(
        arena, "search %.*s%s: %s%s", (int)size, (const char *)search.data,
        size < search.size ? "\xe2\x80\xa6" : "", flame->cut_count ? "\xe2\x89\xa5 " : "",
        quantity_format_percent(share_of(flame, matches), share)));
}

void picture_highlights_find(struct arena *arena, const struct flame *flame, struct span search,
                             struct span marked, struct picture_highlights *ret_marks)
{
    *ret_marks = (struct picture_highlights){0};
    uint8_t *matches = arena_new(arena, uint8_t, flame->frame_count);
    struct regex *regex;
    if (compile_search(arena, search, &regex)) {
        if (match_frames(flame, regex, matches)) {
            ret_marks->text = describe_share(arena, flame, search, matches);
            ret_marks->frames = matches;
        } else {
            memset(matches, 0, flame->frame_count);
        }
        regex_destroy(regex);
    }
    if (marked.size == 0)
        return;
    for (uint32_t i = 0; i < flame->frame_count; i++)
        matches[i] |= i != flame->node_frame[0] && span_equal(flame->frames[i].name, marked);
    ret_marks->frames = matches;
}
