/*
 * picture_layout: where the nodes of a flame graph go in a picture, in which colour
 * (picture_theme.h), with what text; shared by the SVG and the PNG of picture.h.
 *
 * Widths are by weight: the absolute values of both sides, summed up from the leaves, so that
 * children always fit into their parent, in diffs and with negative values too. Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_PICTURE_LAYOUT_H
#define LIB_PROFILE_PICTURE_PICTURE_LAYOUT_H

#include "lib/base/buf.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/picture/picture_theme.h"
#include "lib/profile/picture/short_name.h"

#include <stdbool.h>
#include <stdint.h>

struct flame;

struct picture_box {
    uint32_t node; /* of a run the widest */
    bool is_run;   /* stands for nodes that are narrower than narrow_width each */
    uint32_t depth;
    double left; /* pixels from the left edge of the root, or of the window, and within it */
    double right;
};

struct picture_layout {
    const struct flame *flame;
    double width; /* of the root, or of the window into it, pixels */
    struct picture_window window;
    double narrow_width; /* nodes narrower than this are drawn as runs */
    double run_width;    /* a run that is wider ends, so that its colour says what is there */
    double least_width;  /* runs narrower than this are not drawn */
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

/* Of each node its width before it is scaled; weight has room for all. */
void picture_weigh(const struct flame *flame, double *weight);

/* Index into the theme's fills; marks and fills as in picture_options, fills not NULL. */
uint32_t picture_colour(const struct flame *flame, const uint8_t *marks, const uint8_t *fills,
                        uint32_t node);

/* What is written into the node's box: the root is "all", as in the page. */
struct span picture_name(const struct flame *flame, uint32_t node);

/* Its shorter forms, for a box that is too narrow; none of the value of a label, which is no
 * function. */
void picture_shorten(const struct flame *flame, uint32_t node, struct short_name *ret_short);

/* "cpu: 12.3 s" and, where a filter left something out, how much of what; into text. */
void picture_summary(const struct flame *flame, struct buf *text);

#endif
