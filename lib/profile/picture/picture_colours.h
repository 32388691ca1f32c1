/*
 * picture_colours: the colour of each frame in a picture that is not a diff, the same as on the
 * page (web/src/model/colours/frame_colours.ts). picture_theme.h has the colours of a diff.
 * Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_PICTURE_COLOURS_H
#define LIB_PROFILE_PICTURE_PICTURE_COLOURS_H

#include <stdint.h>

struct arena;
struct flame;

/* The property of a frame that determines its colour. */
enum picture_colouring {
    PICTURE_BY_PACKAGE, /* frame_package.h */
    PICTURE_BY_BINARY,
    PICTURE_BY_VALUE /* a function's own part of the total */
};

/*
 * Returns for each frame of the graph an index into the fills of picture_theme.h. A package or
 * binary has the hue that its name hashes to, so that it looks the same everywhere; if a heavier
 * package or binary has that hue already, it gets another free one. The shade depends on the
 * function's name. A function's own value is the sum over all frames with its name, as a share of
 * all samples, including those that a filter removed. The result is in arena.
 */
const uint8_t *picture_fills(struct arena *arena, const struct flame *flame,
                             enum picture_colouring colouring);

#endif
