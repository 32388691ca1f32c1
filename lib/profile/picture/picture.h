/*
 * picture: draws a flame graph as a still picture: SVG to view and embed, PNG for link previews.
 *
 * Both have the root at the top (an icicle) or, with is_upright, at the bottom (a flame graph). The
 * width of a node is its value; children are in order of descending value. Colours are the page's
 * (picture_theme.h, picture_colours.h). In a diff, orange grew, blue shrank, grey is equal.
 * Adjacent nodes narrower than about a pixel are drawn as one box, a run, in the colour of the
 * widest of them; so cost and size depend on the picture, not on the graph. The SVG leaves out runs
 * narrower than a quarter of a pixel, and states how many frames it left out.
 *
 * The PNG has an indexed palette. If it is larger than 30 kB, it is drawn again with wider runs;
 * only the coarsest drawing may be larger. The SVG is self-contained: no script, style sheet, font
 * file or link; every frame that is not in a run has a <title> that browsers show on hover.
 * Threads: any. Only picture.c includes libpng and freetype.
 */
#ifndef LIB_PROFILE_PICTURE_PICTURE_H
#define LIB_PROFILE_PICTURE_PICTURE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>

struct buf;
struct flame;

enum { PICTURE_PNG_WIDTH = 1200, PICTURE_PNG_HEIGHT = 630 }; /* OpenGraph's 1.91:1 */

/* The part of the root's width that fills the picture, as shares from 0 to 1. {0, 0} means all of
 * it. */
struct picture_window {
    double from;
    double to;
};

/* Whether the picture shows only a part of the root's width. */
static inline bool picture_window_is_part(const struct picture_window *window)
{
    return window->to > window->from && (window->from > 0 || window->to < 1);
}

struct picture_options {
    struct span title;    /* UTF-8; may be empty */
    struct span subtitle; /* the compared profiles, or the filter; may be empty */
    struct span note;     /* for the foot: parts of the request that are not shown; may be empty */
    const uint8_t *marks; /* per frame of the graph: 0 makes it pale; NULL: no frame is pale */
    /* Per frame of the graph, from picture_fills; NULL: by package. Ignored in a diff. */
    const uint8_t *fills;
    bool is_dark;
    bool is_upright; /* the root is at the bottom: a flame graph */
    struct picture_window window;
    uint32_t svg_width; /* pixels, clamped to 200 … 10,000; 0 means 1,200 */
    /* maximum number of levels below the root, at most 2,000; 0 means 64. The picture states how
     * many levels are left out. */
    uint32_t svg_depth;
};

/* Appends an SVG document. options may be NULL. Errors: ERR_TOO_LARGE (output's maximum). */
enum err_code picture_svg(const struct flame *flame, const struct picture_options *options,
                          struct buf *output, struct err *err) MUST_USE;

/*
 * Appends a PNG of 1200 x 630. options may be NULL. font is a TrueType file (DejaVu Sans is part of
 * the server). Errors: ERR_TOO_LARGE (output's maximum), ERR_INVALID (the font).
 */
enum err_code picture_png(const struct flame *flame, const struct picture_options *options,
                          struct span font, struct buf *output, struct err *err) MUST_USE;

/* Computes the width in pixels of text in font at a size in pixels, as a browser does: without
 * hinting. Errors: ERR_INVALID (the font). */
enum err_code picture_text_width(struct span font, int size, struct span text, double *ret_pixels,
                                 struct err *err) MUST_USE;

#endif
