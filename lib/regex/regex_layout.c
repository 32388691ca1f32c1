#include "lib/regex/regex_layout.h"

#include "lib/base/mem.h"
#include "lib/regex/regex.h"
#include "lib/regex/regex_scan.h"

#include <math.h>

/* Positions of a subject, in characters: the mean is taken over the first MEAN_POSITIONS, the
 * maximum over the first POSITIONS. */
enum {
    MEAN_POSITIONS = REGEX_MEAN_BYTES,
    POSITIONS = 1 << 15,
    POSITIONS_MAX = REGEX_LAYOUT_POSITIONS_MAX
};

void regex_layout_init(struct regex_layout *layout, size_t pattern_bytes)
{
    *layout = (struct regex_layout){.groups = {{.ends = {.least = POSITIONS_MAX}}}};
    layout->items = mem_new(struct regex_layout_item, pattern_bytes + 1);
}

void regex_layout_fini(struct regex_layout *layout)
{
    mem_free(layout->items);
}

static uint32_t limit(uint64_t number)
{
    return number > POSITIONS_MAX ? POSITIONS_MAX : (uint32_t)number;
}

static struct regex_extent extent_plus(struct regex_extent extent, uint64_t least, uint64_t most)
{
    return (struct regex_extent){limit(extent.least + least), limit(extent.most + most)};
}

static void end_alternative(struct regex_layout *layout)
{
    struct regex_extent *ends = &layout->groups[layout->depth].ends;
    if (layout->at.least < ends->least)
        ends->least = layout->at.least;
    if (layout->at.most > ends->most)
        ends->most = layout->at.most;
}

static void begin_group(struct regex_layout *layout)
{
    layout->groups[++layout->depth] = (struct regex_layout_group){
        .first_item = layout->count, .begin = layout->at, .ends = {.least = POSITIONS_MAX}};
    layout->items[layout->count++] =
        (struct regex_layout_item){layout->at.least, layout->at.most, 1, 1};
}

static void end_group(struct regex_layout *layout)
{
    const struct regex_layout_group *group = &layout->groups[layout->depth];
    end_alternative(layout);
    layout->at = group->ends;
    layout->last_item = group->first_item;
    layout->last_begin = group->begin;
    layout->depth--;
}

static void add_item(struct regex_layout *layout)
{
    layout->last_item = layout->count;
    layout->last_begin = layout->at;
    layout->items[layout->count++] =
        (struct regex_layout_item){layout->at.least, layout->at.most, 1, 1};
    layout->at = extent_plus(layout->at, 1, 1);
}

/* How many of the copies that a repeat makes can be active at one position. Copies of a fixed
 * length follow each other at that distance; if they can begin at few positions, few of them
 * overlap. */
static uint32_t copies_together(const struct regex_layout *layout, struct regex_extent length,
                                uint32_t repeats)
{
    const uint64_t begins = (uint64_t)layout->last_begin.most - layout->last_begin.least;
    if (length.least != length.most || length.least == 0 || begins / length.least >= repeats)
        return repeats;
    return (uint32_t)(begins / length.least) + 1;
}

/* Repeats the last item or group least to most times; REGEX_SCAN_MANY is a loop after the least
 * copies. */
static void repeat_last(struct regex_layout *layout, uint32_t least, uint32_t most)
{
    const struct regex_extent begin = layout->last_begin;
    const struct regex_extent length = {layout->at.least - begin.least,
                                        layout->at.most - begin.most};
    const bool is_loop = most == REGEX_SCAN_MANY;
    const uint32_t repeats = is_loop ? (least ? least : 1) : most;
    const uint32_t together = copies_together(layout, length, repeats);
    const bool is_at_one_position = length.least == length.most && begin.least == begin.most;
    const uint64_t widened = is_loop       ? POSITIONS_MAX
                             : repeats > 1 ? (uint64_t)length.most * (repeats - 1)
                                           : 0;
    for (size_t i = layout->last_item; i < layout->count; i++) {
        struct regex_layout_item *item = &layout->items[i];
        if (!is_at_one_position)
            item->copies = limit((uint64_t)item->most_copies * together);
        item->most_copies = limit((uint64_t)item->most_copies * repeats);
        item->last = limit(item->last + widened);
    }
    layout->at = extent_plus(begin, (uint64_t)length.least * least,
                             is_loop ? POSITIONS_MAX : (uint64_t)length.most * most);
}

static void next_alternative(struct regex_layout *layout)
{
    end_alternative(layout);
    layout->at = layout->groups[layout->depth].begin;
}

/* Whether the item that was accepted last, which begins with byte, matches one character: it is no
 * assertion and no parenthesis. The bytes of a character outside ASCII are separate items, and only
 * the first of them counts. */
static bool is_character(const struct regex_scan *scanner, uint8_t byte)
{
    if (byte == '\\')
        return scanner->has_atom; /* not for \b */
    return byte != '^' && byte != '$' && byte != ')' && (byte & 0xc0) != 0x80;
}

void regex_layout_add(struct regex_layout *layout, const struct regex_scan *scanner, size_t start)
{
    struct regex_scan item = *scanner;
    item.at = start;
    const uint8_t byte = regex_scan_peek(&item, 0);
    unsigned least, most;
    if (byte == '*' || byte == '+')
        repeat_last(layout, byte == '+', REGEX_SCAN_MANY);
    else if (byte == '?')
        repeat_last(layout, 0, 1);
    else if (byte == '{' && regex_scan_braces(&item, &least, &most))
        repeat_last(layout, least, most);
    else if (byte == '(' && scanner->pattern.data[scanner->at - 1] == ')') /* (?i) */
        return;
    else if (byte == '(' &&
             layout->depth < REGEX_LAYOUT_NEST_MAX) /* deeper ones are refused later */
        begin_group(layout);
    else if (byte == ')' && layout->depth)
        end_group(layout);
    else if (byte == '|')
        next_alternative(layout);
    else if (is_character(scanner, byte))
        add_item(layout);
}

/* The items that can be active at each position. The matcher's time is proportional to the sum of
 * their squares, so the mean is the root of the mean square. */
struct regex_states regex_layout_states(const struct regex_layout *layout)
{
    double *change = mem_new(double, POSITIONS + 1);
    double active = 0, squares = 0, most = 0;
    for (size_t i = 0; i < layout->count; i++) {
        const struct regex_layout_item *item = &layout->items[i];
        if (item->first >= POSITIONS)
            continue;
        change[item->first] += item->copies;
        change[item->last < POSITIONS ? item->last + 1 : POSITIONS] -= item->copies;
    }
    for (size_t position = 0; position < POSITIONS; position++) {
        active += change[position];
        squares += position < MEAN_POSITIONS ? active * active : 0;
        most = active > most ? active : most;
    }
    mem_free(change);
    return (struct regex_states){limit((uint64_t)lround(sqrt(squares / MEAN_POSITIONS))),
                                 limit((uint64_t)most)};
}
