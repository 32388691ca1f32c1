#include "lib/profile/picture/picture.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/picture/picture_colours.h"
#include "lib/profile/picture/picture_layout.h"
#include "lib/profile/quantity.h"
#include "lib/profile/report/flame.h"

#include <math.h>

/*
 * Text is monospaced, because its width is then known without the reader's fonts: 0.602 em in
 * DejaVu Sans Mono, 0.6 in Courier, Menlo and Consolas.
 */
enum { ROW_HEIGHT = 18, HEAD_HEIGHT = 54, FOOT_HEIGHT = 24, MARGIN = 10 };
enum { DEFAULT_WIDTH = 1200, LEAST_WIDTH = 200, MOST_WIDTH = 10000, DEFAULT_DEPTH = 64 };
enum { DEPTH_MAX = 2000 };
#define FONT_FAMILY "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
/* In pixels. Narrower runs are not visible, and there may be hundreds of thousands of them. */
static const double LEAST_WIDTH_DRAWN = 0.25;
static const double FONT_SIZE = 11, CHARACTER_WIDTH = 6.65, TITLE_CHARACTER_WIDTH = 9.7;

struct svg {
    const struct flame *flame;
    const uint8_t *marks;
    const uint8_t *fills;
    struct picture_theme theme;
    struct buf *output;
    double width;
    uint32_t row_count;
    bool is_upright;
};

static size_t count_characters(struct span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += (text.data[i] & 0xc0) != 0x80;
    return count;
}

static struct span first_characters(struct span text, size_t count)
{
    size_t at = 0;
    while (at < text.size && count) {
        at++;
        while (at < text.size && (text.data[at] & 0xc0) == 0x80)
            at++;
        count--;
    }
    return span_of(text.data, at);
}

/* Appends at most `max_characters` characters of text, the last as "…" if the text is longer. */
static void append_fitting(struct buf *output, struct span text, size_t max_characters)
{
    if (count_characters(text) <= max_characters) {
        buf_append_html(output, text);
        return;
    }
    buf_append_html(output, first_characters(text, max_characters - 1));
    buf_append_text(output, "\xe2\x80\xa6");
}

static int top_of(const struct svg *svg, const struct picture_box *box)
{
    const uint32_t row = svg->is_upright ? svg->row_count - 1 - box->depth : box->depth;
    return HEAD_HEIGHT + (int)row * ROW_HEIGHT;
}

static void append_label(struct svg *svg, const struct picture_box *box, uint32_t colour)
{
    double width_pixels = box->right - box->left - 6;
    if (width_pixels < 3 * CHARACTER_WIDTH)
        return;
    size_t max_characters = (size_t)(width_pixels / CHARACTER_WIDTH);
    struct span name = picture_name(svg->flame, box->node);
    struct short_name shorter;
    shorter.count = 0;
    if (count_characters(name) > max_characters)
        picture_shorten(svg->flame, box->node, &shorter);
    for (size_t i = 1; i < shorter.count && count_characters(name) > max_characters; i++)
        name = shorter.forms[i];
    buf_printf(svg->output, "<text x=\"%.1f\" y=\"%d\"", MARGIN + box->left + 3,
               top_of(svg, box) + 13);
    const uint32_t ink = svg->theme.inks[svg->theme.ink_of[colour]];
    if (ink != svg->theme.text)
        buf_printf(svg->output, " fill=\"#%06x\"", ink);
    buf_append_text(svg->output, ">");
    append_fitting(svg->output, name, max_characters);
    buf_append_text(svg->output, "</text>");
}

static void append_share(struct buf *output, int64_t value, int64_t total, struct span unit)
{
    char number[QUANTITY_TEXT_BYTES];
    buf_append_html(output, span_text(quantity_format((double)value, unit, number)));
    if (total)
        buf_printf(output, ", %.2f %%", 100 * (double)value / (double)total);
}

static void append_title(struct svg *svg, uint32_t node)
{
    const struct flame *flame = svg->flame;
    const struct view *view = flame->view;
    buf_append_text(svg->output, "<title>");
    buf_append_html(svg->output, picture_name(flame, node));
    buf_append_text(svg->output, " (");
    if (flame->base_cum) {
        append_share(svg->output, flame->base_cum[node], view->total[VIEW_SIDE_A], view_unit(view));
        buf_append_text(svg->output, " \xe2\x86\x92 ");
    }
    append_share(svg->output, flame->node_cum[node], view->total[VIEW_SIDE_B], view_unit(view));
    buf_append_text(svg->output, ")</title>");
}

static void draw_box(const struct picture_box *box, void *context)
{
    struct svg *svg = context;
    if (buf_failed(svg->output))
        return;
    uint32_t colour = picture_colour(svg->flame, svg->marks, svg->fills, box->node);
    if (!box->is_run) {
        buf_append_text(svg->output, "<g>");
        append_title(svg, box->node);
    }
    /* Half a pixel to the right stays free, so that neighbours of one colour can be distinguished.
     */
    double width = box->right - box->left;
    buf_printf(
        svg->output, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#%06x\"/>",
        MARGIN + box->left, top_of(svg, box), width > 2 && !box->is_run ? width - 0.5 : width,
        ROW_HEIGHT - 1, svg->theme.fills[colour]);
    if (!box->is_run) {
        append_label(svg, box, colour);
        buf_append_text(svg->output, "</g>");
    }
    buf_append_byte(svg->output, '\n');
}

static void append_heading(struct svg *svg, const struct picture_options *options)
{
    struct span title = options->title.size ? options->title : SPAN_LITERAL("Flame graph");
    buf_printf(svg->output, "<text x=\"%d\" y=\"22\" font-size=\"16\" fill=\"#%06x\">", MARGIN,
               svg->theme.text);
    append_fitting(svg->output, title, (size_t)((svg->width - 2 * MARGIN) / TITLE_CHARACTER_WIDTH));
    buf_auto summary;
    buf_init(&summary, 4096);
    picture_summary(svg->flame, &summary);
    if (options->subtitle.size) {
        buf_append_text(&summary, " \xc2\xb7 ");
        buf_append_span(&summary, options->subtitle);
    }
    buf_printf(svg->output, "</text>\n<text x=\"%d\" y=\"42\" fill=\"#%06x\">", MARGIN,
               svg->theme.faint_text);
    append_fitting(svg->output, buf_span(&summary),
                   (size_t)((svg->width - 2 * MARGIN) / CHARACTER_WIDTH));
    buf_append_text(svg->output, "</text>\n");
}

/* States the size of the graph, and the parts of it that the picture does not show. */
static void append_foot(struct svg *svg, const struct picture_options *options,
                        struct picture_extent extent, uint32_t shown_count)
{
    const struct flame *flame = svg->flame;
    buf_printf(svg->output, "<text x=\"%d\" y=\"%d\" fill=\"#%06x\">", MARGIN,
               HEAD_HEIGHT + (int)shown_count * ROW_HEIGHT + 16, svg->theme.faint_text);
    if (options->note.size) {
        buf_append_html(svg->output, options->note);
        buf_append_text(svg->output, "; ");
    }
    char count[QUANTITY_TEXT_BYTES];
    quantity_format(flame->node_count - 1, SPAN_LITERAL("count"), count);
    buf_printf(svg->output, "%s frames, %u levels", count, extent.level_count - 1);
    if (extent.level_count > shown_count)
        buf_printf(svg->output, "; the deepest %u levels are not drawn",
                   extent.level_count - shown_count);
    if (extent.undrawn_count)
        buf_printf(svg->output, "; %s too narrow to be drawn",
                   quantity_format(extent.undrawn_count, SPAN_LITERAL("count"), count));
    if (flame->cut_hidden_count)
        buf_printf(svg->output, "; %llu small frames are joined into others",
                   (unsigned long long)flame->cut_hidden_count);
    buf_append_text(svg->output, "</text>\n");
}

static double clamp_width(uint32_t width)
{
    if (width == 0)
        return DEFAULT_WIDTH;
    return width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width;
}

enum err_code picture_svg(const struct flame *flame, const struct picture_options *options,
                          struct buf *output, struct err *err)
{
    static const struct picture_options none;
    options = options ? options : &none;
    arena_auto arena = arena_create();
    struct svg svg = {.flame = flame, .output = output, .width = clamp_width(options->svg_width)};
    svg.marks = options->marks;
    svg.fills = options->fills ? options->fills : picture_fills(arena, flame, PICTURE_BY_PACKAGE);
    svg.is_upright = options->is_upright;
    picture_theme_init(&svg.theme, options->is_dark);
    uint32_t most = options->svg_depth ? options->svg_depth : DEFAULT_DEPTH;
    most = (most < DEPTH_MAX ? most : DEPTH_MAX) + 1; /* the root is a level of its own */
    uint32_t wanted = picture_layout_depth(flame, 0);
    uint32_t shown = wanted < most ? wanted : most;
    svg.row_count = shown;
    double height = HEAD_HEIGHT + shown * ROW_HEIGHT + FOOT_HEIGHT;
    buf_printf(output,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
               "viewBox=\"0 0 %.0f %.0f\" font-family=\"" FONT_FAMILY "\" font-size=\"%.0f\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#%06x\"/>\n",
               svg.width, height, svg.width, height, FONT_SIZE, svg.theme.background);
    append_heading(&svg, options);
    buf_printf(output, "<g fill=\"#%06x\">\n", svg.theme.text);
    const struct picture_layout layout = {.flame = flame,
                                          .width = svg.width - 2 * MARGIN,
                                          .window = options->window,
                                          .narrow_width = 1,
                                          .run_width = 16,
                                          .least_width = LEAST_WIDTH_DRAWN,
                                          .max_depth = shown,
                                          .draw = draw_box,
                                          .context = &svg};
    const struct picture_extent extent = picture_layout_run(&layout);
    buf_append_text(output, "</g>\n");
    append_foot(&svg, options, extent, shown);
    buf_append_text(output, "</svg>\n");
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "picture of more than %zu bytes", output->max_size);
    return ERR_NONE;
}
