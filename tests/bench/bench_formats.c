/*
 * bench_formats: CPU time of one thread for reading the text and JSON formats, and for drawing a
 * flame graph of 1M nodes. Prints rows of tests/bench/run.py: name,figure,unit,goal,met.
 *
 * All texts contain the same generated profile: 60,000 stacks of depth 23 over 700 functions.
 */
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/export_folded.h"
#include "lib/profile/report/export_json.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/view.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 5, STACKS = 60000, DEPTH = 22, TEXT_MAX = 1 << 28 };

static const char font_path[] = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

/* xorshift64*, so that the stacks are the same on all platforms. */
static uint32_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 33);
}

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

/* Frame numbers of one stack: few branches near the root, many further up. */
static void next_stack(uint64_t *state, unsigned stack[DEPTH])
{
    for (unsigned depth = 0; depth < DEPTH; depth++) {
        unsigned ways = depth < 6 ? 3 : 32;
        stack[depth] = depth * 32 + next_random(state) % ways;
    }
}

static void write_folded(struct buf *text)
{
    uint64_t state = 1;
    unsigned stack[DEPTH];
    for (int i = 0; i < STACKS; i++) {
        next_stack(&state, stack);
        buf_append_text(text, "main");
        for (int depth = 0; depth < DEPTH; depth++)
            buf_printf(text, ";package%u.function%u", stack[depth] / 8, stack[depth]);
        buf_printf(text, " %u\n", 1 + next_random(&state) % 1000);
    }
}

static void write_perf_script(struct buf *text)
{
    uint64_t state = 1;
    unsigned stack[DEPTH];
    for (int i = 0; i < STACKS; i++) {
        next_stack(&state, stack);
        buf_printf(text, "service  %d/%d [%03d] %d.%06d:  %u cycles: \n", 100, 100 + i % 8, i % 4,
                   i, i, 1 + next_random(&state) % 1000);
        for (int depth = DEPTH; depth-- > 0;)
            buf_printf(text, "\t%16x package%u.function%u+0x%x (/usr/bin/service)\n",
                       0x400000 + stack[depth] * 64, stack[depth] / 8, stack[depth], 12);
        buf_append_text(text, "\n");
    }
}

static void write_speedscope(struct buf *text)
{
    uint64_t state = 1;
    unsigned stack[DEPTH];
    buf_append_text(text, "{\"shared\":{\"frames\":[");
    for (int i = 0; i < DEPTH * 32; i++)
        buf_printf(text, "%s{\"name\":\"package%d.function%d\"}", i ? "," : "", i / 8, i);
    buf_append_text(text, "]},\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"weights\":[");
    for (int i = 0; i < STACKS; i++)
        buf_printf(text, "%s%d", i ? "," : "", i % 1000);
    buf_append_text(text, "],\"samples\":[");
    for (int i = 0; i < STACKS; i++) {
        next_stack(&state, stack);
        for (int depth = 0; depth < DEPTH; depth++)
            buf_printf(text, "%s%u", depth ? "," : i ? ",[" : "[", stack[depth]);
        buf_append_text(text, "]");
    }
    buf_append_text(text, "]}]}");
}

static void measure_decode(const char *name, void (*write)(struct buf *text))
{
    buf_auto text;
    struct profile *profile;
    struct err err;
    int64_t best_ns = INT64_MAX;
    buf_init(&text, TEXT_MAX);
    write(&text);
    for (int i = 0; i < RUNS; i++) {
        int64_t start_ns = clock_thread_cpu_ns();
        if (format_decode(buf_span(&text), NULL, NULL, &profile, &err))
            fail(name, &err);
        int64_t spent_ns = clock_thread_cpu_ns() - start_ns;
        best_ns = spent_ns < best_ns ? spent_ns : best_ns;
        profile_destroy(profile);
    }
    printf("%s decode,%.0f,MB/s,,\n", name, (double)text.size * 1e3 / (double)best_ns);
}

static struct span read_font(struct arena *arena)
{
    enum { FONT_BYTES_MAX = 4 << 20 };
    uint8_t *bytes = arena_new(arena, uint8_t, FONT_BYTES_MAX);
    FILE *file = fopen(font_path, "rb");
    struct err err = {.message = "cannot be read"};
    if (!file)
        fail(font_path, &err);
    size_t size = fread(bytes, 1, FONT_BYTES_MAX, file);
    fclose(file);
    return span_of(bytes, size);
}

enum drawing { DRAW_PNG, DRAW_SVG, DRAW_JSON, DRAW_FOLDED };

static void measure_drawing(const char *name, enum drawing drawing, const struct flame *flame,
                            struct span font, double goal_ms)
{
    buf_auto output;
    struct err err;
    enum err_code code = ERR_NONE;
    int64_t best_ns = INT64_MAX;
    buf_init(&output, TEXT_MAX);
    for (int i = 0; i < RUNS && !code; i++) {
        buf_clear(&output);
        int64_t start_ns = clock_thread_cpu_ns();
        if (drawing == DRAW_PNG)
            code = picture_png(flame, NULL, font, &output, &err);
        else if (drawing == DRAW_SVG)
            code = picture_svg(flame, NULL, &output, &err);
        else if (drawing == DRAW_JSON)
            code = export_json(flame, 0, (struct span){0}, &output, &err);
        else
            code = export_folded(flame->view, &output, &err);
        int64_t spent_ns = clock_thread_cpu_ns() - start_ns;
        best_ns = spent_ns < best_ns ? spent_ns : best_ns;
    }
    if (code)
        fail(name, &err);
    double spent_ms = (double)best_ns / 1e6;
    printf("%s of %u nodes,%.1f,ms,", name, flame->node_count, spent_ms);
    if (goal_ms > 0)
        printf("at most %.0f,%s\n", goal_ms, spent_ms <= goal_ms ? "yes" : "no");
    else
        printf(",\n");
    if (drawing == DRAW_PNG)
        printf("picture PNG size,%.1f,kB,at most 30,%s\n", (double)output.size / 1e3,
               output.size <= 30000 ? "yes" : "no");
}

static void measure_drawings(void)
{
    arena_auto arena = arena_create();
    buf_auto text;
    struct profile *profile;
    const struct view *view;
    const struct flame *flame;
    struct err err;
    const struct view_options options = {.sample_type = SPAN_LITERAL("")};
    buf_init(&text, TEXT_MAX);
    write_folded(&text);
    if (format_decode(buf_span(&text), NULL, NULL, &profile, &err) ||
        view_create(arena, profile, &options, &view, &err) ||
        flame_create(arena, view, 0, &flame, &err))
        fail("flame graph", &err);
    struct span font = read_font(arena);
    measure_drawing("picture PNG", DRAW_PNG, flame, font, 150);
    measure_drawing("picture SVG", DRAW_SVG, flame, font, 0);
    measure_drawing("export JSON", DRAW_JSON, flame, font, 0);
    measure_drawing("export folded", DRAW_FOLDED, flame, font, 0);
    profile_destroy(profile);
}

int main(void)
{
    measure_decode("folded", write_folded);
    measure_decode("perf script", write_perf_script);
    measure_decode("speedscope", write_speedscope);
    measure_drawings();
    return 0;
}
