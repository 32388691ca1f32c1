#include "lib/profile/picture/picture_layout.h"

#include "lib/base/mem.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/unit.h"

#include <math.h>
#include <stdio.h>

/* The widest run of narrow nodes at one depth that is still being collected. */
struct run {
    double left;
    double right;
    uint32_t node_count;
    uint32_t widest_node; /* of whom the run has its colour */
    double widest;
};

struct walk {
    const struct picture_layout *layout;
    double *weight; /* per node */
    double *next;   /* per node: where its next child begins */
    uint32_t *depth;
    struct run *runs; /* per depth */
    struct picture_extent extent;
};

static double magnitude(int64_t value)
{
    return fabs((double)value);
}

/* By what is not yet rounded: of a diff scaled to a few samples, most boxes would have no width. */
void picture_weigh(const struct flame *flame, double *weight)
{
    const int64_t *self = flame->unscaled_self ? flame->unscaled_self : flame->node_self;
    double scale = flame->unscaled_self ? fabs(flame->view->scale) : 1;
    for (uint32_t i = 0; i < flame->node_count; i++)
        weight[i] =
            magnitude(self[i]) * scale + (flame->base_self ? magnitude(flame->base_self[i]) : 0);
    for (uint32_t i = flame->node_count; i-- > 1;)
        weight[flame->node_parent[i]] += weight[i];
}

static void flush_run(struct walk *walk, uint32_t depth)
{
    struct run *run = &walk->runs[depth];
    if (run->right - run->left < walk->layout->least_width)
        walk->extent.undrawn_count += run->node_count;
    else if (run->right > run->left)
        walk->layout->draw(&(struct picture_box){.node = run->widest_node,
                                                 .is_run = true,
                                                 .depth = depth,
                                                 .left = run->left,
                                                 .right = run->right},
                           walk->layout->context);
    *run = (struct run){0};
}

/* Narrow nodes that touch make one run; a gap of less than half a pixel is none. */
static void place(struct walk *walk, uint32_t node, double left, double right)
{
    const struct picture_layout *layout = walk->layout;
    uint32_t depth = walk->depth[node];
    struct run *run = &walk->runs[depth];
    if (right <= 0 || left >= layout->width)
        return; /* beside the window */
    left = left < 0 ? 0 : left;
    right = right > layout->width ? layout->width : right;
    if (right - left >= layout->narrow_width) {
        flush_run(walk, depth);
        layout->draw(
            &(struct picture_box){.node = node, .depth = depth, .left = left, .right = right},
            layout->context);
        return;
    }
    if (run->node_count && (left - run->right > 0.5 || right - run->left > layout->run_width))
        flush_run(walk, depth);
    if (run->node_count == 0)
        run->left = left;
    run->right = right;
    if (run->node_count == 0 || right - left > run->widest) {
        run->widest = right - left;
        run->widest_node = node;
    }
    run->node_count++;
}

static void walk_nodes(struct walk *walk)
{
    const struct flame *flame = walk->layout->flame;
    const struct picture_window *window = &walk->layout->window;
    const double seen = picture_window_is_part(window) ? window->to - window->from : 1;
    const double root_width = walk->layout->width / seen;
    double scale = walk->weight[0] > 0 ? root_width / walk->weight[0] : 0;
    uint32_t *level_count = &walk->extent.level_count;
    *level_count = 1;
    walk->next[0] = seen < 1 ? -window->from * root_width : 0;
    place(walk, 0, walk->next[0], walk->next[0] + root_width);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        uint32_t parent = flame->node_parent[i];
        double left = walk->next[parent], right = left + walk->weight[i] * scale;
        walk->next[parent] = right;
        walk->next[i] = left;
        walk->depth[i] = walk->depth[parent] + 1;
        if (walk->depth[i] >= *level_count)
            *level_count = walk->depth[i] + 1;
        if (walk->depth[i] < walk->layout->max_depth)
            place(walk, i, left, right);
    }
    for (uint32_t depth = 0; depth < walk->layout->max_depth; depth++)
        flush_run(walk, depth);
}

struct picture_extent picture_layout_run(const struct picture_layout *layout)
{
    uint32_t count = layout->flame->node_count;
    struct walk walk = {.layout = layout,
                        .weight = mem_new(double, count),
                        .next = mem_new(double, count),
                        .depth = mem_new(uint32_t, count),
                        .runs = mem_new(struct run, layout->max_depth)};
    picture_weigh(layout->flame, walk.weight);
    walk_nodes(&walk);
    mem_free(walk.weight);
    mem_free(walk.next);
    mem_free(walk.depth);
    mem_free(walk.runs);
    return walk.extent;
}

uint32_t picture_layout_depth(const struct flame *flame, double least_part)
{
    double *weight = mem_new(double, flame->node_count);
    uint32_t *depth = mem_new(uint32_t, flame->node_count);
    uint32_t deepest = 0;
    picture_weigh(flame, weight);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        depth[i] = depth[flame->node_parent[i]] + 1;
        if (depth[i] > deepest && weight[i] >= weight[0] * least_part)
            deepest = depth[i];
    }
    mem_free(weight);
    mem_free(depth);
    return deepest + 1;
}

struct span picture_name(const struct flame *flame, uint32_t node)
{
    return node ? flame->frames[flame->node_frame[node]].name : SPAN_LITERAL("all");
}

void picture_shorten(const struct flame *flame, uint32_t node, struct short_name *ret_short)
{
    ret_short->count = 0;
    if (!(flame->frames[flame->node_frame[node]].flags & FRAME_LABEL))
        short_name_make(picture_name(flame, node), ret_short);
}

uint32_t picture_colour(const struct flame *flame, const uint8_t *marks, const uint8_t *fills,
                        uint32_t node)
{
    if (marks && node && !marks[flame->node_frame[node]])
        return PICTURE_PALE_COLOUR;
    if (flame->base_self)
        return picture_diff_colour(flame->base_cum[node], flame->node_cum[node]);
    return node ? fills[flame->node_frame[node]] : PICTURE_ROOT_COLOUR;
}

static void append_value(const struct flame *flame, int64_t value, struct buf *text)
{
    char number[PICTURE_VALUE_BYTES];
    buf_append_text(text, picture_value((double)value, view_unit(flame->view), number));
}

void picture_summary(const struct flame *flame, struct buf *text)
{
    const struct view *view = flame->view;
    struct span type = view_sample_type(view);
    if (type.size) {
        buf_append_span(text, type);
        buf_append_text(text, ": ");
    }
    if (view->is_diff) {
        append_value(flame, view->total[VIEW_SIDE_A], text);
        buf_append_text(text, " \xe2\x86\x92 "); /* an arrow */
    }
    append_value(flame, view->total[VIEW_SIDE_B], text);
    if (view->kept[VIEW_SIDE_B] != view->total[VIEW_SIDE_B] && view->total[VIEW_SIDE_B]) {
        buf_append_text(text, ", shown: ");
        append_value(flame, view->kept[VIEW_SIDE_B], text);
        char share[PICTURE_VALUE_BYTES];
        buf_printf(text, " (%s)",
                   picture_percent(100 * (double)view->kept[VIEW_SIDE_B] /
                                       (double)view->total[VIEW_SIDE_B],
                                   share));
    }
}

/* Decimal places that show three digits that count, none of a whole number. The bounds are those
 * from which on rounding to the places of the smaller numbers makes one digit more. */
static int decimals_of(double size)
{
    return size >= 99.95 || size == floor(size) ? 0 : size >= 9.995 ? 1 : 2;
}

/* The size that write_scaled shows. */
static double rounded(double value)
{
    const double size = fabs(value), power = pow(10, decimals_of(size));
    return round(size * power) / power;
}

/* A number with three digits that count, or whole with separators below a million. */
static void write_scaled(double value, const char *unit, char text[PICTURE_VALUE_BYTES])
{
    snprintf(text, PICTURE_VALUE_BYTES, "%.*f%s%s", decimals_of(fabs(value)), value,
             *unit ? " " : "", unit);
}

static void write_count(double value, const char *unit, char text[PICTURE_VALUE_BYTES])
{
    static const char *const powers[] = {"", " k", " M", " G", " T", " P", " E"};
    if (fabs(value) < 999999.5) {
        long long whole = llround(fabs(value));
        const char *sign = value < 0 ? "-" : "";
        if (whole < 1000)
            snprintf(text, PICTURE_VALUE_BYTES, "%s%lld%s%s", sign, whole, *unit ? " " : "", unit);
        else
            snprintf(text, PICTURE_VALUE_BYTES, "%s%lld,%03lld%s%s", sign, whole / 1000,
                     whole % 1000, *unit ? " " : "", unit);
        return;
    }
    size_t power = 0;
    for (; fabs(value) >= 999.5 && power < 6; power++)
        value /= 1000;
    snprintf(text, PICTURE_VALUE_BYTES, "%.*f%s%s%s", fabs(value) >= 99.995 ? 0 : 2, value,
             powers[power], *unit ? " " : "", unit);
}

/* steps: the next unit's size in this one, ended by 0. */
static void write_steps(double value, const char *const *names, const double *steps,
                        char text[PICTURE_VALUE_BYTES])
{
    size_t i = 0;
    while (steps[i] > 0 && rounded(value) >= steps[i])
        value /= steps[i++];
    write_scaled(value, names[i], text);
}

/* Halves are rounded up, as browsers do. */
const char *picture_percent(double percent, char text[PICTURE_VALUE_BYTES])
{
    if (percent > 0 && percent < 0.01)
        return strcpy(text, "<0.01 %");
    const double size = fabs(percent);
    const int decimals = size >= 99.95 || size == 0 ? 0 : size >= 10 ? 1 : 2;
    const double scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1, scaled = percent * scale;
    const bool is_half = scaled - floor(scaled) == 0.5 && fma(percent, scale, -scaled) == 0;
    snprintf(text, PICTURE_VALUE_BYTES, "%.*f %%", decimals,
             is_half ? nextafter(percent, percent + 1) : percent);
    return text;
}

const char *picture_value(double value, struct span unit, char text[PICTURE_VALUE_BYTES])
{
    static const struct {
        const char *name;
        double ns;
    } times[] = {
        {"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}};
    static const char *const time_names[] = {"ns", "\xc2\xb5s", "ms", "s", "min", "h", "d"};
    static const double time_steps[] = {1e3, 1e3, 1e3, 60, 60, 24, 0};
    static const char *const byte_names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    static const double byte_steps[] = {1024, 1024, 1024, 1024, 1024, 1024, 0};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (span_equal_text(unit, times[i].name)) {
            write_steps(value * times[i].ns, time_names, time_steps, text);
            return text;
        }
    }
    if (span_equal_text(unit, "bytes")) {
        write_steps(value, byte_names, byte_steps, text);
        return text;
    }
    char name[24] = "";
    const unsigned decimals = unit_decimals(unit);
    value /= pow(10, decimals);
    if (decimals && fabs(value) < 1000) {
        write_scaled(value, "", text);
        return text;
    }
    if (!decimals && !span_equal_text(unit, "count") && span_is_utf8(unit))
        snprintf(name, sizeof(name), "%.*s", (int)(unit.size < 20 ? unit.size : 20),
                 (const char *)unit.data);
    write_count(value, name, text);
    return text;
}
