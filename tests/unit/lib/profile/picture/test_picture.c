#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "tests/unit/lib/profile/maker.h"
#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/clock.h"
#include "lib/profile/formats/folded.h"
#include "lib/profile/picture/frame_package.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/picture/picture_layout.h"
#include "lib/profile/report/diff.h"
#include "lib/profile/report/flame.h"

static const char font_path[] = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

static struct span read_font(struct arena *arena)
{
    enum { FONT_BYTES_MAX = 4 << 20 };
    uint8_t *bytes = arena_new(arena, uint8_t, FONT_BYTES_MAX);
    FILE *file = fopen(font_path, "rb");
    if (!file)
        return span_of(NULL, 0);
    size_t size = fread(bytes, 1, FONT_BYTES_MAX, file);
    fclose(file);
    return span_of(bytes, size);
}

static const struct flame *flame_of(struct arena *arena, const struct view *view)
{
    const struct flame *flame;
    struct err err;
    assert_int_equal(flame_create(arena, view, 0, &flame, &err), ERR_NONE);
    return flame;
}

static const struct flame *plain_flame(struct arena *arena, const struct profile *profile)
{
    const struct view *view;
    struct err err;
    const struct view_options options = {.sample_type = SPAN_LITERAL("")};
    assert_int_equal(view_create(arena, profile, &options, &view, &err), ERR_NONE);
    return flame_of(arena, view);
}

static bool holds(const struct buf *buf, const char *text)
{
    return memmem(buf->data, buf->size, text, strlen(text)) != NULL;
}

static void svg_contains_every_wide_frame_and_escapes_names(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("main;<b>&\"x\" 60\nmain;run 40\n"));
    const struct picture_options options = {.title = SPAN_LITERAL("</text><script>"),
                                            .subtitle = SPAN_LITERAL("focus=run")};
    buf_auto svg;
    struct err err;
    buf_init(&svg, 1 << 20);
    assert_int_equal(picture_svg(plain_flame(arena, profile), &options, &svg, &err), ERR_NONE);
    assert_true(holds(&svg, "<title>&lt;b&gt;&amp;&quot;x&quot; (60, 60.00 %)</title>"));
    assert_true(holds(&svg, "<title>main (100, 100.00 %)</title>"));
    assert_true(holds(&svg, "&lt;/text&gt;&lt;script&gt;"));
    assert_true(holds(&svg, "samples: 100"));
    assert_true(holds(&svg, "focus=run"));
    assert_false(holds(&svg, "<script"));
    assert_false(holds(&svg, "href"));
    assert_false(holds(&svg, "<style"));
    profile_destroy(profile);
}

static void svg_reports_omitted_levels(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *profile = decode_text(folded_decode, SPAN_LITERAL("a;b;c;d;e;f 1\n"));
    const struct picture_options options = {.svg_depth = 3, .svg_width = 400};
    buf_auto svg;
    struct err err;
    buf_init(&svg, 1 << 20);
    assert_int_equal(picture_svg(plain_flame(arena, profile), &options, &svg, &err), ERR_NONE);
    assert_true(holds(&svg, "the deepest 3 levels are not drawn"));
    assert_true(holds(&svg, "<title>c "));
    assert_false(holds(&svg, "<title>d "));
    assert_true(holds(&svg, "width=\"400\""));
    profile_destroy(profile);
}

/* "/api/v1/thing" in a label is not the path of a function. */
static void values_of_labels_are_not_shortened(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct maker maker = NEW_MAKER("samples/count");
    put_text(&maker, "endpoint", "/api/v1/some/rather/long/thing");
    ADD(&maker, "github.com/acme/some/rather/long/path.run", 1);
    struct profile *profile = take(&maker);
    const struct view_options options = {.group_by = SPAN_LITERAL("endpoint")};
    const struct picture_options narrow = {.svg_width = 200};
    const struct view *view;
    struct err err;
    buf_auto svg;
    buf_init(&svg, 1 << 20);
    assert_int_equal(view_create(arena, profile, &options, &view, &err), ERR_NONE);
    assert_int_equal(picture_svg(flame_of(arena, view), &narrow, &svg, &err), ERR_NONE);
    assert_true(holds(&svg, ">/api/v1/some/"));
    assert_true(holds(&svg, ">path.run<"));
    profile_destroy(profile);
}

/* 500 functions of two pixels, each with a callee of less than a hundredth of a pixel. */
static void boxes_that_are_too_narrow_for_svg_are_counted(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto folded, svg;
    struct err err;
    buf_init(&folded, 1 << 20);
    for (int i = 0; i < 500; i++)
        buf_printf(&folded, "f%d 1000\nf%d;tiny 3\n", i, i);
    struct profile *profile = decode_text(folded_decode, buf_span(&folded));
    buf_init(&svg, 1 << 20);
    assert_int_equal(picture_svg(plain_flame(arena, profile), NULL, &svg, &err), ERR_NONE);
    assert_true(holds(&svg, "1,000 frames, 2 levels; 500 too narrow to be drawn"));
    assert_true(holds(&svg, "<title>f499 "));
    assert_false(holds(&svg, "width=\"0."));
    profile_destroy(profile);
}

struct sums {
    double width[8]; /* per depth */
    double right[8];
};

static void sum_boxes(const struct picture_box *box, void *context)
{
    struct sums *sums = context;
    assert_true(box->depth < 8);
    assert_true(box->left >= sums->right[box->depth] - 1e-6); /* from left to right, no overlap */
    sums->right[box->depth] = box->right;
    sums->width[box->depth] += box->right - box->left;
}

static void children_fit_into_their_parents_with_negative_values_too(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("a;b -5\na;c 4\na;d;e 3\na;d;f -3\ng 1\n"));
    struct sums sums = {0};
    const struct picture_layout layout = {.flame = plain_flame(arena, profile),
                                          .width = 100,
                                          .narrow_width = 0.1,
                                          .max_depth = 8,
                                          .draw = sum_boxes,
                                          .context = &sums};
    assert_int_equal(picture_layout_run(&layout).level_count, 4);
    for (int depth = 0; depth < 2; depth++)
        assert_true(sums.width[depth] > 99.999 && sums.width[depth] < 100.001);
    assert_true(sums.width[2] < sums.width[1] && sums.width[3] <= sums.width[2]);
    profile_destroy(profile);
}

struct boxes_of_one {
    const struct flame *flame;
    int count;
};

static void assert_box_of_one(const struct picture_box *box, void *context)
{
    struct boxes_of_one *boxes = context;
    double width = box->right - box->left;
    if (box->depth == 0 || boxes->flame->base_cum[box->node] != 0)
        return;
    assert_true(width > 6.249 && width < 6.251);
    boxes->count++;
}

/* 8 functions share half of the width, each with half a sample of 4. */
static void a_normalised_diff_is_laid_out_before_it_is_rounded(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *a = decode_text(folded_decode, SPAN_LITERAL("x 4\n"));
    struct profile *b =
        decode_text(folded_decode, SPAN_LITERAL("a 1\nb 1\nc 1\nd 1\ne 1\nf 1\ng 1\nh 1\n"));
    const struct view_options options = {.sample_type = SPAN_LITERAL("")};
    const struct view *view;
    struct err err;
    assert_int_equal(diff_view_create(arena, a, b, DIFF_NORMALISED, &options, &view, &err), 0);
    const struct flame *flame = flame_of(arena, view);
    assert_int_equal(flame->node_count, 10);
    struct boxes_of_one boxes = {.flame = flame};
    const struct picture_layout layout = {.flame = flame,
                                          .width = 100,
                                          .narrow_width = 0.1,
                                          .max_depth = 8,
                                          .draw = assert_box_of_one,
                                          .context = &boxes};
    assert_int_equal(picture_layout_run(&layout).undrawn_count, 0);
    assert_int_equal(boxes.count, 8);
    profile_destroy(a);
    profile_destroy(b);
}

static uint32_t read_u32(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static void png_has_its_size_and_a_palette(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct span font = read_font(arena);
    if (!font.size)
        skip();
    struct profile *profile = decode_text(folded_decode, SPAN_LITERAL("main;a 60\nmain;b 40\n"));
    const struct picture_options options = {.title =
                                                SPAN_LITERAL("A title, \xc3\xa9\xe4\xbd\xa0 \xff")};
    buf_auto png;
    struct err err;
    buf_init(&png, 1 << 20);
    assert_int_equal(picture_png(plain_flame(arena, profile), &options, font, &png, &err), 0);
    assert_memory_equal(png.data, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(read_u32(png.data + 16), PICTURE_PNG_WIDTH);
    assert_int_equal(read_u32(png.data + 20), PICTURE_PNG_HEIGHT);
    assert_int_equal(png.data[25], 3); /* colour type: palette */
    assert_true(png.size < 30000);
    profile_destroy(profile);
}

static void a_busy_png_stays_small(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct span font = read_font(arena);
    if (!font.size)
        skip();
    buf_auto text, png;
    struct err err;
    buf_init(&text, 1 << 22);
    buf_init(&png, 1 << 20);
    uint32_t random = 7;
    for (int i = 0; i < 6000; i++) {
        for (int depth = 0; depth < 24; depth++) {
            random = random * 1664525 + 1013904223;
            buf_printf(&text, "%sname%u", depth ? ";" : "", depth < 3 ? 0 : random >> 30);
        }
        buf_printf(&text, " %u\n", 1 + (random >> 24));
    }
    struct profile *profile = decode_text(folded_decode, buf_span(&text));
    assert_int_equal(picture_png(plain_flame(arena, profile), NULL, font, &png, &err), ERR_NONE);
    assert_true(png.size <= 30000);
    profile_destroy(profile);
}

static void a_diff_is_drawn_in_its_own_colours(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *a =
        decode_text(folded_decode, SPAN_LITERAL("x;grew 5\nx;shrank 9\nx;same 3\n"));
    struct profile *b = decode_text(folded_decode, SPAN_LITERAL("x;grew 9\nx;same 3\nx;new 1\n"));
    const struct view *view;
    struct err err;
    const struct view_options options = {.sample_type = SPAN_LITERAL("")};
    assert_int_equal(diff_view_create(arena, a, b, DIFF_ABSOLUTE, &options, &view, &err), 0);
    const struct flame *flame = flame_of(arena, view);
    const uint32_t equal = PICTURE_DIFF_COLOUR + PICTURE_DIFF_STEPS;
    for (uint32_t i = 0; i < flame->node_count; i++) {
        struct span name = flame->frames[flame->node_frame[i]].name;
        uint32_t colour = picture_colour(flame, NULL, NULL, i);
        assert_true(!span_equal_text(name, "grew") || colour > equal);
        assert_true(!span_equal_text(name, "new") || colour == equal + PICTURE_DIFF_STEPS);
        assert_true(!span_equal_text(name, "shrank") || colour == equal - PICTURE_DIFF_STEPS);
        assert_true(!span_equal_text(name, "same") || colour == equal);
    }
    buf_auto svg;
    buf_init(&svg, 1 << 20);
    assert_int_equal(picture_svg(flame, NULL, &svg, &err), ERR_NONE);
    assert_true(holds(&svg, "shrank (9, 52.94 % \xe2\x86\x92 0, 0.00 %)"));
    profile_destroy(a);
    profile_destroy(b);
}

/* Reads a row of a table in tests/ into line, split at tabs. Returns the number of cells, 0 at the
 * end. */
static size_t read_row(FILE *table, char line[2048], char *cells[], size_t most)
{
    while (fgets(line, 2048, table)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        size_t count = 0;
        for (char *cell = line; cell && count < most; cell = strchr(cell, '\t')) {
            if (count)
                *cell++ = '\0';
            cells[count++] = cell;
        }
        return count;
    }
    return 0;
}

static void colours_equal_those_of_the_page(void **state)
{
    (void)state;
    struct picture_theme themes[2];
    for (int is_dark = 0; is_dark < 2; is_dark++)
        picture_theme_init(&themes[is_dark], is_dark);
    char line[2048], *cells[5];
    FILE *table = fopen("tests/picture_theme.txt", "r");
    assert_non_null(table);
    uint32_t at = 0;
    for (; read_row(table, line, cells, 5) == 5; at++) {
        for (int is_dark = 0; is_dark < 2; is_dark++) {
            const struct picture_theme *theme = &themes[is_dark];
            char fill[8], ink[8];
            snprintf(fill, sizeof(fill), "#%06x", theme->fills[at]);
            snprintf(ink, sizeof(ink), "#%06x", theme->inks[theme->ink_of[at]]);
            assert_string_equal(fill, cells[1 + 2 * is_dark]);
            assert_string_equal(ink, cells[2 + 2 * is_dark]);
        }
    }
    assert_int_equal(at, PICTURE_COLOUR_COUNT);
    fclose(table);
}

static void packages_equal_those_of_the_page(void **state)
{
    (void)state;
    char line[2048], *cells[4];
    FILE *table = fopen("tests/frame_packages.txt", "r");
    assert_non_null(table);
    size_t count = 0;
    for (; read_row(table, line, cells, 4) == 4; count++) {
        const struct frame frame = {.name = span_text(cells[0]),
                                    .mapping = span_text(cells[1]),
                                    .file = span_text(cells[2])};
        const struct span made = frame_package(&frame);
        if (!span_equal_text(made, cells[3]))
            fail_msg("%s: %.*s, not %s", cells[0], (int)made.size, (const char *)made.data,
                     cells[3]);
        /* Every prefix of the name: nothing after it is read. */
        for (size_t size = 0; size < frame.name.size; size++) {
            uint8_t *part = mem_new(uint8_t, size + 1);
            memcpy(part, cells[0], size);
            frame_package(&(struct frame){.name = span_of(part, size)});
            mem_free(part);
        }
    }
    assert_true(count > 50);
    fclose(table);
}

static void an_invalid_font_is_refused(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *profile = decode_text(folded_decode, SPAN_LITERAL("main;a 60\n"));
    buf_auto png;
    struct err err;
    buf_init(&png, 1 << 20);
    struct span font = SPAN_LITERAL("no font");
    assert_int_equal(picture_png(plain_flame(arena, profile), NULL, font, &png, &err), ERR_INVALID);
    profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(svg_contains_every_wide_frame_and_escapes_names),
        cmocka_unit_test(svg_reports_omitted_levels),
        cmocka_unit_test(values_of_labels_are_not_shortened),
        cmocka_unit_test(boxes_that_are_too_narrow_for_svg_are_counted),
        cmocka_unit_test(children_fit_into_their_parents_with_negative_values_too),
        cmocka_unit_test(png_has_its_size_and_a_palette),
        cmocka_unit_test(a_busy_png_stays_small),
        cmocka_unit_test(a_normalised_diff_is_laid_out_before_it_is_rounded),
        cmocka_unit_test(a_diff_is_drawn_in_its_own_colours),
        cmocka_unit_test(colours_equal_those_of_the_page),
        cmocka_unit_test(packages_equal_those_of_the_page),
        cmocka_unit_test(an_invalid_font_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
