#include "lib/profile/picture/picture.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/picture/picture_colours.h"
#include "lib/profile/picture/picture_layout.h"
#include "lib/profile/quantity.h"
#include "lib/profile/report/flame.h"

#include <ft2build.h>
#include <math.h>
#include <png.h>
#include FT_FREETYPE_H

/* Pixels. The picture is shown at a third of its size by most sites, so the heading is large. */
enum {
    MARGIN = 40,
    TITLE_SIZE = 34,
    TITLE_BASELINE = 62,
    SUMMARY_SIZE = 22,
    SUMMARY_BASELINE = 102,
    BRAND_SIZE = 22,
    FOOT_SIZE = 15,
    FOOT_BASELINE = 616,
    GRAPH_TOP = 126,
    GRAPH_BOTTOM = 592,
    GRAPH_WIDTH = PICTURE_PNG_WIDTH - 2 * MARGIN,
    ROW_LEAST = 16,
    ROW_MOST = 34,
    ONE_PIXEL = 64 /* in freetype's units */
};

/* Bytes. A picture that is larger is drawn again with less detail. */
enum { SIZE_GOAL = 30000 };

/*
 * Palette: the background; the text colours of the heading, with the shades between background and
 * text; the text colours on boxes; each fill that the picture uses, with the shades between it and
 * the text on it.
 */
enum {
    LABEL_LEVELS = 4,
    HEAD_LEVELS = 8,
    INDEX_TEXT = 1,
    INDEX_FAINT_TEXT = INDEX_TEXT + HEAD_LEVELS,
    INDEX_INKS = INDEX_FAINT_TEXT + HEAD_LEVELS,
    INDEX_COLOURS = INDEX_INKS + PICTURE_INKS,
    /* A picture is coloured either by package, or by value or change. */
    COLOURS_MOST = PICTURE_FRAME_COLOURS + PICTURE_COLOUR_COUNT - PICTURE_ROOT_COLOUR,
    INDEX_COUNT = INDEX_COLOURS + COLOURS_MOST * LABEL_LEVELS
};
_Static_assert(INDEX_COUNT <= 256, "an index is a byte");

enum { GLYPHS_CACHED = 128 };

struct glyph {
    bool is_known;
    int advance; /* pixels */
    int left;
    int top;
    int width;
    int height;
    uint8_t *pixels; /* coverage */
};

struct face {
    FT_Library library;
    FT_Face face;
    struct arena *arena;
    struct glyph glyphs[GLYPHS_CACHED]; /* of the current size */
    struct glyph other;
    int size;
};

struct canvas {
    const struct flame *flame;
    const uint8_t *marks;
    const uint8_t *fills;
    struct face *face;
    struct picture_theme theme;
    uint8_t slots[PICTURE_COLOUR_COUNT]; /* per fill: its index in colours plus 1; 0: not drawn */
    uint32_t colours[COLOURS_MOST];      /* the fills that are drawn */
    uint8_t colour_count;
    uint8_t *pixels;
    int row_height;
    int row_count;
    bool is_upright;
    struct picture_window window;
};

static enum err_code open_face(struct face *face, struct span font, struct err *err)
{
    *face = (struct face){0};
    if (FT_Init_FreeType(&face->library))
        return err_set(err, ERR_INTERNAL, "freetype does not start");
    if (font.size == 0 || font.size > INT32_MAX ||
        FT_New_Memory_Face(face->library, font.data, (FT_Long)font.size, 0, &face->face)) {
        FT_Done_FreeType(face->library);
        return err_set(err, ERR_INVALID, "the font for pictures cannot be read");
    }
    face->arena = arena_create();
    return ERR_NONE;
}

static void close_face(struct face *face)
{
    FT_Done_Face(face->face);
    FT_Done_FreeType(face->library);
    arena_destroy(face->arena);
}

static void set_size(struct face *face, int size)
{
    if (face->size == size)
        return;
    face->size = size;
    memset(face->glyphs, 0, sizeof(face->glyphs));
    FT_Set_Pixel_Sizes(face->face, 0, (FT_UInt)size);
}

static void load_glyph(struct face *face, uint32_t code_point, struct glyph *glyph)
{
    *glyph = (struct glyph){.is_known = true};
    if (FT_Load_Char(face->face, code_point, FT_LOAD_RENDER | FT_LOAD_TARGET_LIGHT))
        return;
    const FT_GlyphSlot slot = face->face->glyph;
    glyph->advance = (int)(slot->advance.x / ONE_PIXEL);
    if (slot->bitmap.pixel_mode != FT_PIXEL_MODE_GRAY || slot->bitmap.pitch < 0)
        return;
    glyph->left = slot->bitmap_left;
    glyph->top = slot->bitmap_top;
    glyph->width = (int)slot->bitmap.width;
    glyph->height = (int)slot->bitmap.rows;
    glyph->pixels =
        arena_new_raw(face->arena, uint8_t, (size_t)glyph->width * (size_t)glyph->height);
    for (int y = 0; y < glyph->height; y++)
        memcpy(glyph->pixels + y * glyph->width, slot->bitmap.buffer + y * slot->bitmap.pitch,
               (size_t)glyph->width);
}

/* Valid until the next call. */
static const struct glyph *find_glyph(struct face *face, uint32_t code_point)
{
    struct glyph *glyph = code_point < GLYPHS_CACHED ? &face->glyphs[code_point] : &face->other;
    if (code_point >= GLYPHS_CACHED || !glyph->is_known)
        load_glyph(face, code_point, glyph);
    return glyph;
}

/* Removes one character from *text; invalid UTF-8 and control characters become U+FFFD. */
static uint32_t take_code_point(struct span *text)
{
    const uint32_t code_point = span_take_code_point(text);
    return code_point < 0x20 || code_point == 0x7f ? 0xfffd : code_point;
}

static int text_width(struct face *face, struct span text)
{
    int width = 0;
    while (text.size && width < PICTURE_PNG_WIDTH)
        width += find_glyph(face, take_code_point(&text))->advance;
    return width;
}

/* Palette indexes of a text's colours: coverage 0 is base - 1 (the background), the levels in
 * between follow, and full coverage is full (the colour of the text). */
struct ink {
    uint8_t base;
    uint8_t full;
    int levels;
};

static void draw_glyph(struct canvas *canvas, const struct glyph *glyph, int x, int baseline,
                       struct ink ink)
{
    for (int row = 0; row < glyph->height; row++) {
        int y = baseline - glyph->top + row;
        if (y < 0 || y >= PICTURE_PNG_HEIGHT)
            continue;
        for (int column = 0; column < glyph->width; column++) {
            int at = x + glyph->left + column;
            int level = (glyph->pixels[row * glyph->width + column] * ink.levels + 127) / 255;
            if (level == 0 || at < 0 || at >= PICTURE_PNG_WIDTH)
                continue;
            canvas->pixels[y * PICTURE_PNG_WIDTH + at] =
                level == ink.levels ? ink.full : (uint8_t)(ink.base + level);
        }
    }
}

/* Draws as much of text as fits into width pixels, with "…" if it does not fit. Returns the x after
 * it. */
static int draw_text(struct canvas *canvas, struct span text, int x, int baseline, int width,
                     struct ink ink)
{
    enum { ELLIPSIS = 0x2026 };
    bool is_cut = text_width(canvas->face, text) > width;
    int end = x + width - (is_cut ? find_glyph(canvas->face, ELLIPSIS)->advance : 0);
    while (text.size) {
        const struct glyph *glyph = find_glyph(canvas->face, take_code_point(&text));
        if (x + glyph->advance > end)
            break;
        draw_glyph(canvas, glyph, x, baseline, ink);
        x += glyph->advance;
    }
    if (is_cut)
        draw_glyph(canvas, find_glyph(canvas->face, ELLIPSIS), x, baseline, ink);
    return x;
}

static void fill(struct canvas *canvas, int left, int top, int right, int bottom, uint8_t index)
{
    for (int y = top; y < bottom; y++)
        memset(canvas->pixels + y * PICTURE_PNG_WIDTH + left, index, (size_t)(right - left));
}

/* The palette index of a fill, which is added if the picture does not have it yet. */
static uint8_t palette_index(struct canvas *canvas, uint32_t colour)
{
    if (!canvas->slots[colour]) {
        canvas->colours[canvas->colour_count] = colour;
        canvas->slots[colour] = ++canvas->colour_count;
    }
    return (uint8_t)(INDEX_COLOURS + (canvas->slots[colour] - 1) * LABEL_LEVELS);
}

static void draw_label(struct canvas *canvas, uint32_t node, uint32_t colour, int left, int right,
                       int top)
{
    enum { PADDING = 5, LEAST_WIDTH = 34 };
    const struct flame *flame = canvas->flame;
    struct span name = picture_name(flame, node);
    int width = right - left - 2 * PADDING;
    if (width < LEAST_WIDTH)
        return;
    struct short_name shorter;
    shorter.count = 0;
    if (text_width(canvas->face, name) > width)
        picture_shorten(flame, node, &shorter);
    for (size_t i = 1; i < shorter.count && text_width(canvas->face, name) > width; i++)
        name = shorter.forms[i];
    int baseline = top + (canvas->row_height + canvas->face->size * 7 / 10) / 2;
    draw_text(canvas, name, left + PADDING, baseline, width,
              (struct ink){.base = palette_index(canvas, colour),
                           .full = (uint8_t)(INDEX_INKS + canvas->theme.ink_of[colour]),
                           .levels = LABEL_LEVELS});
}

static void draw_box(const struct picture_box *box, void *context)
{
    struct canvas *canvas = context;
    int left = MARGIN + (int)lround(box->left), right = MARGIN + (int)lround(box->right);
    int row = canvas->is_upright ? canvas->row_count - 1 - (int)box->depth : (int)box->depth;
    int top = GRAPH_TOP + row * canvas->row_height;
    uint32_t colour = picture_colour(canvas->flame, canvas->marks, canvas->fills, box->node);
    if (right <= left)
        return;
    /* A line of background separates neighbours, unless the box is too narrow. */
    int gap = !box->is_run && right - left > 2;
    fill(canvas, left, top, right - gap, top + canvas->row_height - 1,
         palette_index(canvas, colour));
    if (!box->is_run)
        draw_label(canvas, box->node, colour, left, right, top);
}

static struct ink heading_ink(uint8_t first)
{
    return (struct ink){.base = (uint8_t)(first - 1),
                        .full = (uint8_t)(first + HEAD_LEVELS - 1),
                        .levels = HEAD_LEVELS};
}

static void draw_heading(struct canvas *canvas, const struct picture_options *options)
{
    static const struct span brand = SPAN_LITERAL("Perfolio");
    struct span title = options->title.size ? options->title : SPAN_LITERAL("Flame graph");
    set_size(canvas->face, BRAND_SIZE);
    int brand_width = text_width(canvas->face, brand);
    draw_text(canvas, brand, PICTURE_PNG_WIDTH - MARGIN - brand_width, TITLE_BASELINE, brand_width,
              heading_ink(INDEX_FAINT_TEXT));
    set_size(canvas->face, TITLE_SIZE);
    draw_text(canvas, title, MARGIN, TITLE_BASELINE, GRAPH_WIDTH - brand_width - MARGIN,
              heading_ink(INDEX_TEXT));
    buf_auto summary;
    buf_init(&summary, 4096);
    picture_summary(canvas->flame, &summary);
    if (options->subtitle.size) {
        buf_append_text(&summary, " \xc2\xb7 ");
        buf_append_span(&summary, options->subtitle);
    }
    set_size(canvas->face, SUMMARY_SIZE);
    draw_text(canvas, buf_span(&summary), MARGIN, SUMMARY_BASELINE, GRAPH_WIDTH,
              heading_ink(INDEX_FAINT_TEXT));
}

static void draw_foot(struct canvas *canvas, const struct picture_options *options,
                      uint32_t level_count, uint32_t shown_count)
{
    buf_auto text;
    buf_init(&text, 4096);
    if (options->note.size) {
        buf_append_span(&text, options->note);
        buf_append_text(&text, " \xc2\xb7 ");
    }
    char count[QUANTITY_TEXT_BYTES];
    quantity_format(canvas->flame->node_count - 1, SPAN_LITERAL("count"), count);
    buf_printf(&text, "%s frames, %u levels", count, level_count - 1);
    if (level_count > shown_count)
        buf_printf(&text, ", the deepest %u not drawn", level_count - shown_count);
    set_size(canvas->face, FOOT_SIZE);
    draw_text(canvas, buf_span(&text), MARGIN, FOOT_BASELINE, GRAPH_WIDTH,
              heading_ink(INDEX_FAINT_TEXT));
}

/* Chooses the largest row height, from ROW_LEAST to ROW_MOST, with which the levels fit that have a
 * node of at least VISIBLE_PIXELS. *ret_shown_count: the rows that fit then. */
static void choose_rows(struct canvas *canvas, uint32_t *ret_shown_count)
{
    enum { VISIBLE_PIXELS = 4, AVAILABLE = GRAPH_BOTTOM - GRAPH_TOP };
    const double seen =
        picture_window_is_part(&canvas->window) ? canvas->window.to - canvas->window.from : 1;
    uint32_t level_count = picture_layout_depth(canvas->flame, seen * VISIBLE_PIXELS / GRAPH_WIDTH);
    int height = level_count < AVAILABLE ? AVAILABLE / (int)level_count : 0;
    canvas->row_height = height < ROW_LEAST ? ROW_LEAST : height > ROW_MOST ? ROW_MOST : height;
    canvas->row_count = AVAILABLE / canvas->row_height;
    *ret_shown_count = (uint32_t)canvas->row_count;
}

static void draw(struct canvas *canvas, const struct picture_options *options, double narrow_width)
{
    uint32_t shown_count;
    memset(canvas->pixels, 0, (size_t)PICTURE_PNG_WIDTH * PICTURE_PNG_HEIGHT);
    choose_rows(canvas, &shown_count);
    draw_heading(canvas, options);
    /* Text is a little smaller than its row, and at most 16 pixels. */
    set_size(canvas->face, canvas->row_height * 6 / 10 < 16 ? canvas->row_height * 5 / 8 + 1 : 16);
    const struct picture_layout layout = {.flame = canvas->flame,
                                          .width = GRAPH_WIDTH,
                                          .window = canvas->window,
                                          .narrow_width = narrow_width,
                                          .run_width = 2 * narrow_width,
                                          .max_depth = shown_count,
                                          .draw = draw_box,
                                          .context = canvas};
    draw_foot(canvas, options, picture_layout_run(&layout).level_count, shown_count);
}

static void set_entry(uint8_t entry[3], uint32_t from, uint32_t to, double part)
{
    const uint32_t mixed = picture_mix(from, to, part);
    for (unsigned i = 0; i < 3; i++)
        entry[i] = (uint8_t)(mixed >> (16 - 8 * i));
}

static void make_palette(const struct canvas *canvas, uint8_t palette[INDEX_COUNT][3])
{
    const struct picture_theme *theme = &canvas->theme;
    set_entry(palette[0], theme->background, theme->background, 0);
    for (int level = 1; level <= HEAD_LEVELS; level++) {
        const double part = (double)level / HEAD_LEVELS;
        set_entry(palette[INDEX_TEXT + level - 1], theme->background, theme->text, part);
        set_entry(palette[INDEX_FAINT_TEXT + level - 1], theme->background, theme->faint_text,
                  part);
    }
    for (int i = 0; i < PICTURE_INKS; i++)
        set_entry(palette[INDEX_INKS + i], theme->inks[i], theme->inks[i], 0);
    for (int i = 0; i < canvas->colour_count; i++) {
        const uint32_t colour = canvas->colours[i];
        for (int level = 0; level < LABEL_LEVELS; level++)
            set_entry(palette[INDEX_COLOURS + i * LABEL_LEVELS + level], theme->fills[colour],
                      theme->inks[theme->ink_of[colour]], (double)level / LABEL_LEVELS);
    }
}

static enum err_code encode_png(const struct canvas *canvas, struct buf *png, struct err *err)
{
    uint8_t palette[INDEX_COUNT][3];
    make_palette(canvas, palette);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = PICTURE_PNG_WIDTH,
                       .height = PICTURE_PNG_HEIGHT,
                       .format = PNG_FORMAT_RGB | PNG_FORMAT_FLAG_COLORMAP,
                       .colormap_entries =
                           INDEX_COLOURS + (png_uint_32)canvas->colour_count * LABEL_LEVELS};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *free_bytes = buf_reserve(png, size);
    if (!free_bytes || !png_image_write_to_memory(&image, free_bytes, &size, 0, canvas->pixels,
                                                  PICTURE_PNG_WIDTH, palette))
        return err_set(err, ERR_INTERNAL, "writing PNG: %.60s", image.message);
    buf_commit(png, size);
    return ERR_NONE;
}

static enum err_code draw_small_enough(struct canvas *canvas, const struct picture_options *options,
                                       struct buf *png, struct err *err)
{
    static const double narrow_widths[] = {1.5, 4, 12, 40}; /* pixels; the last one is final */
    for (size_t i = 0; i < sizeof(narrow_widths) / sizeof(narrow_widths[0]); i++) {
        buf_clear(png);
        draw(canvas, options, narrow_widths[i]);
        enum err_code code = encode_png(canvas, png, err);
        if (code)
            return code;
        if (png->size <= SIZE_GOAL)
            break;
    }
    return ERR_NONE;
}

enum err_code picture_text_width(struct span font, int size, struct span text, double *ret_pixels,
                                 struct err *err)
{
    struct face face;
    double width = 0;
    enum err_code code = open_face(&face, font, err);
    if (code)
        return code;
    FT_Set_Pixel_Sizes(face.face, 0, (FT_UInt)size);
    while (text.size) {
        uint32_t code_point = take_code_point(&text);
        if (FT_Load_Char(face.face, code_point, FT_LOAD_NO_HINTING) == 0)
            width += (double)face.face->glyph->linearHoriAdvance / (1 << 16); /* 16.16 */
    }
    close_face(&face);
    *ret_pixels = width;
    return ERR_NONE;
}

enum err_code picture_png(const struct flame *flame, const struct picture_options *options,
                          struct span font, struct buf *output, struct err *err)
{
    static const struct picture_options none;
    struct face face;
    enum err_code code = open_face(&face, font, err);
    if (code)
        return code;
    arena_auto arena = arena_create();
    struct canvas canvas = {.flame = flame,
                            .face = &face,
                            .marks = options ? options->marks : NULL,
                            .fills = options && options->fills
                                         ? options->fills
                                         : picture_fills(arena, flame, PICTURE_BY_PACKAGE),
                            .is_upright = options && options->is_upright,
                            .window = options ? options->window : none.window};
    canvas.pixels = mem_alloc(PICTURE_PNG_WIDTH, PICTURE_PNG_HEIGHT);
    picture_theme_init(&canvas.theme, options && options->is_dark);
    buf_auto png;
    buf_init(&png, (size_t)4 * PICTURE_PNG_WIDTH * PICTURE_PNG_HEIGHT);
    code = draw_small_enough(&canvas, options ? options : &none, &png, err);
    mem_free(canvas.pixels);
    close_face(&face);
    if (code)
        return code;
    buf_append_span(output, buf_span(&png));
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "picture of more than %zu bytes", output->max_size);
    return ERR_NONE;
}
