/*
 * picture_layout: where the nodes of a flame graph go in a picture, in which colour, with what
 * text; shared by the SVG and the PNG of picture.h.
 *
 * Widths are by weight: the absolute values of both sides, summed up from the leaves, so that
 * children always fit into their parent, in diffs and with negative values too. Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_LAYOUT_H
#define LIB_PROFILE_PICTURE_LAYOUT_H

#include "lib/base/buf.h"
#include "lib/profile/picture.h"
#include "lib/profile/short_name.h"

#include <stdbool.h>
#include <stdint.h>

struct flame;

/* Colours are 0xrrggbb. */
enum {
    PICTURE_HUES = 8,
    PICTURE_SHADES = 3,
    PICTURE_FRAME_COLOURS = PICTURE_HUES * PICTURE_SHADES,
    PICTURE_DIFF_STEPS = 6, /* to each side of equal */
    PICTURE_DIFF_COLOURS = 2 * PICTURE_DIFF_STEPS + 1,
    PICTURE_HEAT_STEPS = 7, /* of what a function holds itself */
    PICTURE_HEAT_COLOUR = PICTURE_FRAME_COLOURS + PICTURE_DIFF_COLOURS,
    PICTURE_ROOT_COLOUR = PICTURE_HEAT_COLOUR + PICTURE_HEAT_STEPS,
    PICTURE_OTHER_COLOUR,
    PICTURE_PALE_COLOUR,  /* of what a search did not find */
    PICTURE_SHADE_COLOUR, /* stands for nodes too narrow to draw */
    PICTURE_COLOUR_COUNT
};

struct picture_theme {
    uint32_t background;
    uint32_t text;
    uint32_t faint_text;
    uint32_t frame_text;
    uint32_t colours[PICTURE_COLOUR_COUNT];
};

void picture_theme_init(struct picture_theme *theme, bool is_dark);

struct picture_box {
    uint32_t node; /* UINT32_MAX: a run of nodes narrower than narrow_width */
    uint32_t depth;
    double left; /* pixels from the left edge of the root, or of the window, and within it */
    double right;
};

struct picture_layout {
    const struct flame *flame;
    double width; /* of the root, or of the window into it, pixels */
    struct picture_window window;
    double narrow_width; /* nodes narrower than this are drawn as a shade */
    double least_width;  /* shades narrower than this are not drawn */
    uint32_t max_depth;  /* levels drawn, the root included */
    void (*draw)(const struct picture_box *box, void *context);
    void *context;
};

/* What of the graph there is, and what of it no box shows. */
struct picture_extent {
    uint32_t level_count;   /* the root included; those beyond max_depth were not drawn */
    uint32_t undrawn_count; /* nodes of the levels drawn that are too narrow to be in any box */
};

/* Calls draw for every box, parents before children. */
struct picture_extent picture_layout_run(const struct picture_layout *layout);

/* The number of levels among nodes at least as wide as that part of the root. */
uint32_t picture_layout_depth(const struct flame *flame, double least_part);

/* Index into theme->colours; marks and heat as in picture_options. */
uint32_t picture_colour(const struct flame *flame, const uint8_t *marks, const uint8_t *heat,
                        uint32_t node);

/* What is written into the node's box: the root is "all", as in the page. */
struct span picture_name(const struct flame *flame, uint32_t node);

/* Its shorter forms, for a box that is too narrow; none of the value of a label, which is no
 * function. */
void picture_shorten(const struct flame *flame, uint32_t node, struct short_name *ret_short);

/* "cpu: 12.3 s" and, where a filter left something out, how much of what; into text. */
void picture_summary(const struct flame *flame, struct buf *text);

#endif
