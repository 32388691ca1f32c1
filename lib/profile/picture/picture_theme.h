/*
 * picture_theme: the colours of pictures and of the text on them, light and dark, the same as on
 * the page (web/src/model/colours/colour.ts; tests/picture_theme.txt tests both). They are computed
 * in OKLCH, where equal steps look equal. Text on every fill should have a contrast of at least 4.5
 * to 1: the first ink that has it is used, else the last one.
 *
 * Threads: any. Source: OKLab, https://bottosson.github.io/posts/oklab/; contrast as defined by
 * WCAG 2.
 */
#ifndef LIB_PROFILE_PICTURE_PICTURE_THEME_H
#define LIB_PROFILE_PICTURE_PICTURE_THEME_H

#include <stdbool.h>
#include <stdint.h>

/* The fills, in this order: a colour for each hue and shade, then by own value, then of a diff,
 * then the root and pale. Some of the constants are indexes into fills, others are counts. */
enum {
    PICTURE_HUES = 16,
    PICTURE_NEUTRAL_HUE = PICTURE_HUES, /* kernel and unnamed code */
    PICTURE_SHADES = 3,
    PICTURE_FRAME_COLOURS = (PICTURE_HUES + 1) * PICTURE_SHADES,
    PICTURE_HEAT_STEPS = 7,                      /* by a function's own value */
    PICTURE_HEAT_COLOUR = PICTURE_FRAME_COLOURS, /* the first one: no own value */
    PICTURE_DIFF_STEPS = 6,                      /* to each side of equal */
    PICTURE_DIFF_COLOURS = 2 * PICTURE_DIFF_STEPS + 1,
    /* the first one, "much less" */
    PICTURE_DIFF_COLOUR = PICTURE_HEAT_COLOUR + PICTURE_HEAT_STEPS,
    PICTURE_ROOT_COLOUR = PICTURE_DIFF_COLOUR + PICTURE_DIFF_COLOURS,
    PICTURE_PALE_COLOUR, /* frames that a search did not match */
    PICTURE_COLOUR_COUNT
};

enum { PICTURE_INKS = 4 };

/* Colours are 0xrrggbb. */
struct picture_theme {
    uint32_t background;
    uint32_t text;
    uint32_t faint_text;
    uint32_t inks[PICTURE_INKS]; /* all colours of text on fills */
    uint32_t fills[PICTURE_COLOUR_COUNT];
    uint8_t ink_of[PICTURE_COLOUR_COUNT]; /* index into inks, per fill */
};

void picture_theme_init(struct picture_theme *theme, bool is_dark);

/* Mixes two colours; part is from 0 (from) to 1 (to). */
uint32_t picture_mix(uint32_t from, uint32_t to, double part);

/* Returns the index of a node's colour in a diff, by its change relative to its larger side. */
uint32_t picture_diff_colour(int64_t before, int64_t after);

#endif
