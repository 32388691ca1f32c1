/*
 * picture_fills: which colour each frame has in a picture, as the page has it
 * (web/src/model/frame_colours.ts). Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_PICTURE_COLOURS_H
#define LIB_PROFILE_PICTURE_PICTURE_COLOURS_H

#include <stdint.h>

struct arena;
struct flame;

/* What colours tell apart. */
enum picture_colouring {
    PICTURE_BY_PACKAGE, /* frame_package.h */
    PICTURE_BY_BINARY,
    PICTURE_BY_VALUE /* how much of everything each function holds itself */
};

/*
 * Per frame of the graph, an index into the fills of picture_theme.h. A package or binary has the
 * hue that its name hashes to, so that it looks the same everywhere, unless a heavier one has it
 * already; then the next free one; the shade is of the function's name. What a function holds
 * itself is of all frames of its name, as a share of all samples, also of those that a filter left
 * out. In arena.
 */
const uint8_t *picture_fills(struct arena *arena, const struct flame *flame,
                             enum picture_colouring colouring);

#endif
