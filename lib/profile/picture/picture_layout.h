/*
 * picture_layout: the position, colour (picture_theme.h) and text of each node of a flame graph in
 * a picture; shared by the SVG and the PNG of picture.h.
 *
 * Widths are proportional to weights: the absolute values of both sides, summed from the leaves, so
 * that children always fit into their parent, also in diffs and with negative values. Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_PICTURE_LAYOUT_H
#define LIB_PROFILE_PICTURE_PICTURE_LAYOUT_H

#include "lib/base/span.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/picture/picture_theme.h"
#include "lib/profile/picture/short_name.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct flame;

struct picture_box {
    uint32_t node;  /* index in the graph; of a run: that of its widest node */
    bool is_run;    /* a run of nodes that are each narrower than narrow_width */
    uint32_t depth; /* 0: the root */
    /* pixels from the left edge of the root, or of the window; clipped to the window */
    double left;
    double right;
};

struct picture_layout {
    const struct flame *flame;
    double width; /* of the root, or of the window into it, in pixels */
    struct picture_window window;
    double narrow_width; /* nodes narrower than this are drawn as runs */
    double run_width;    /* maximum width of a run, so that its colour represents its nodes */
    double least_width;  /* runs narrower than this are not drawn */
    uint32_t max_depth;  /* levels drawn, including the root */
    void (*draw)(const struct picture_box *box, void *context);
    void *context;
};

/* The size of the graph, and the nodes that no box shows. */
struct picture_extent {
    uint32_t level_count;   /* including the root; levels beyond max_depth were not drawn */
    uint32_t undrawn_count; /* nodes of the drawn levels that are too narrow for any box */
};

/* Calls draw for every box, parents before children. */
struct picture_extent picture_layout_run(const struct picture_layout *layout);

/* The number of levels down to the deepest node that is at least least_part as wide as the root;
 * includes the root's level. */
uint32_t picture_layout_depth(const struct flame *flame, double least_part);

/* Computes the weight of each node, to which its width is proportional. weight has an entry per
 * node of the graph. */
void picture_weigh(const struct flame *flame, double *weight);

/* Returns the colour of a node as an index into the theme's fills. marks and fills are as in
 * picture_options, but fills must not be NULL. */
uint32_t picture_colour(const struct flame *flame, const uint8_t *marks, const uint8_t *fills,
                        uint32_t node);

/* The text of the node's box; the root is "all", as on the page. */
struct span picture_name(const struct flame *flame, uint32_t node);

/* Makes the shorter forms of the node's text, for narrow boxes. The value of a label, which is not
 * a function's name, has none: ret_short->count is then 0. */
void picture_shorten(const struct flame *flame, uint32_t node, struct short_name *ret_short);

/* Appends "cpu: 12.3 s" and, if a filter removed something, the part that is left. */
void picture_summary(const struct flame *flame, struct buf *text);

#endif
