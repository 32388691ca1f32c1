#include "lib/profile/picture_layout.h"

#include "lib/base/mem.h"
#include "lib/profile/flame.h"
#include "lib/profile/folded.h"

#include <math.h>
#include <stdio.h>

/* The widest run of narrow nodes at one depth that is still being collected. */
struct run {
    double left;
    double right;
    uint32_t node_count;
};

struct walk {
    const struct picture_layout *layout;
    double *weight; /* per node */
    double *next;   /* per node: where its next child begins */
    uint32_t *depth;
    struct run *runs; /* per depth */
    struct picture_extent extent;
};

/* Hue, saturation (per cent) and the lightness of three shades. Warm for most, one cool pair, so
 * that neighbours differ and dark text stays readable (contrast above 4.5:1). */
static const struct {
    double hue;
    double saturation;
} hues[PICTURE_HUES] = {{28, 88}, {42, 90},  {14, 82},  {54, 78},
                        {84, 52}, {168, 44}, {200, 62}, {338, 66}};

/* From little to much: lightness tells the steps apart, and dark text stays readable on the last.
 */
static const uint32_t heat_colours[PICTURE_HEAT_STEPS] = {0xf0ece7, 0xf9d9ab, 0xf5c18d, 0xf2a875,
                                                          0xee8e64, 0xe7725a, 0xdd5559};

static double channel(double position, double low, double high)
{
    position = fmod(position + 360, 360);
    if (position < 60)
        return low + (high - low) * position / 60;
    if (position < 180)
        return high;
    return position < 240 ? low + (high - low) * (240 - position) / 60 : low;
}

static uint32_t colour_of(double hue, double saturation, double lightness)
{
    double l = lightness / 100, s = saturation / 100;
    double high = l < 0.5 ? l * (1 + s) : l + s - l * s, low = 2 * l - high;
    uint32_t red = (uint32_t)lround(255 * channel(hue + 120, low, high));
    uint32_t green = (uint32_t)lround(255 * channel(hue, low, high));
    uint32_t blue = (uint32_t)lround(255 * channel(hue - 120, low, high));
    return red << 16 | green << 8 | blue;
}

static uint32_t mix(uint32_t from, uint32_t to, double part)
{
    uint32_t mixed = 0;
    for (unsigned shift = 0; shift <= 16; shift += 8) {
        double a = from >> shift & 0xff, b = to >> shift & 0xff;
        mixed |= (uint32_t)lround(a + (b - a) * part) << shift;
    }
    return mixed;
}

void picture_theme_init(struct picture_theme *theme, bool is_dark)
{
    *theme = (struct picture_theme){
        .background = is_dark ? 0x16181d : 0xffffff,
        .text = is_dark ? 0xf2f3f5 : 0x1b1f26,
        .faint_text = is_dark ? 0x9aa2af : 0x5b6472,
        .frame_text = 0x17130c,
    };
    for (int i = 0; i < PICTURE_HUES; i++) {
        for (int shade = 0; shade < PICTURE_SHADES; shade++)
            theme->colours[i * PICTURE_SHADES + shade] =
                colour_of(hues[i].hue, hues[i].saturation, 66 + 6 * shade);
    }
    uint32_t *diff = &theme->colours[PICTURE_FRAME_COLOURS + PICTURE_DIFF_STEPS];
    for (int step = 0; step <= PICTURE_DIFF_STEPS; step++) {
        double part = sqrt((double)step / PICTURE_DIFF_STEPS); /* small changes show, too */
        diff[step] = mix(0xdcdfe4, 0xe8822a, part);
        diff[-step] = mix(0xdcdfe4, 0x4f8df0, part);
    }
    for (int step = 0; step < PICTURE_HEAT_STEPS; step++)
        theme->colours[PICTURE_HEAT_COLOUR + step] = heat_colours[step];
    theme->colours[PICTURE_ROOT_COLOUR] = is_dark ? 0xaab1bd : 0xd5d9e0;
    theme->colours[PICTURE_OTHER_COLOUR] = is_dark ? 0x8b93a1 : 0xc3c8d1;
    theme->colours[PICTURE_PALE_COLOUR] = is_dark ? 0x848a94 : 0xe4e7ec;
    theme->colours[PICTURE_SHADE_COLOUR] = is_dark ? 0x6e5a45 : 0xe3cfb4;
}

static double magnitude(int64_t value)
{
    return fabs((double)value);
}

/* By what is not yet rounded: of a diff scaled to a few samples, most boxes would have no width. */
static void weigh(const struct flame *flame, double *weight)
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
        walk->layout->draw(
            &(struct picture_box){
                .node = UINT32_MAX, .depth = depth, .left = run->left, .right = run->right},
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
    if (run->node_count && left - run->right > 0.5)
        flush_run(walk, depth);
    if (run->node_count == 0)
        run->left = left;
    run->right = right;
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
    weigh(layout->flame, walk.weight);
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
    weigh(flame, weight);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        depth[i] = depth[flame->node_parent[i]] + 1;
        if (depth[i] > deepest && weight[i] >= weight[0] * least_part)
            deepest = depth[i];
    }
    mem_free(weight);
    mem_free(depth);
    return deepest + 1;
}

/* How much of a name its colour is made of: a megabyte may stand in thousands of boxes. */
enum { COLOURED_BYTES = 4096 };

static struct span coloured_part(struct span name)
{
    return span_of(name.data, name.size < COLOURED_BYTES ? name.size : COLOURED_BYTES);
}

/* FNV-1a: stable for ever, so that a picture does not change its colours with a library. */
static uint32_t hash_name(struct span name)
{
    uint32_t hash = 2166136261u;
    name = coloured_part(name);
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ name.data[i]) * 16777619u;
    hash ^= hash >> 15;
    return hash * 0x2c1b3c6du >> 8;
}

/* What a function belongs to: its package ("net/http" of net/http.(*conn).serve), class or name
 * space, else its binary or file. */
static struct span family_of(const struct frame *frame)
{
    const struct span name = coloured_part(frame->name);
    size_t end = 0;
    bool has_path = false;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t byte = name.data[i];
        if (byte == '(' || byte == '<' || (byte == '.' && has_path && end))
            break;
        if (byte == '/') {
            has_path = true;
            end = 0;
        } else if (byte == '.' || byte == ':') {
            end = i;
        }
    }
    if (end)
        return span_of(name.data, end);
    return frame->mapping.size ? frame->mapping : frame->file;
}

static uint32_t diff_colour(const struct flame *flame, uint32_t node)
{
    /* By how much of the larger side the node changed; equal totals are not assumed. */
    double base = magnitude(flame->base_cum[node]), value = magnitude(flame->node_cum[node]);
    double larger = base > value ? base : value;
    double change = larger > 0 ? (value - base) / larger : 0;
    int step = (int)lround(change * PICTURE_DIFF_STEPS);
    return (uint32_t)(PICTURE_FRAME_COLOURS + PICTURE_DIFF_STEPS + step);
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

uint32_t picture_colour(const struct flame *flame, const uint8_t *marks, const uint8_t *heat,
                        uint32_t node)
{
    const struct frame *frame = &flame->frames[flame->node_frame[node]];
    if (marks && node && !marks[flame->node_frame[node]])
        return PICTURE_PALE_COLOUR;
    if (frame->flags & FRAME_OTHER)
        return PICTURE_OTHER_COLOUR;
    if (flame->base_self)
        return diff_colour(flame, node);
    if (node == 0)
        return PICTURE_ROOT_COLOUR;
    if (heat)
        return PICTURE_HEAT_COLOUR + (uint32_t)heat[flame->node_frame[node]];
    uint32_t hue = hash_name(family_of(frame)) % PICTURE_HUES;
    return hue * PICTURE_SHADES + hash_name(frame->name) % PICTURE_SHADES;
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
        buf_printf(text, " (%.1f %%)",
                   100 * (double)view->kept[VIEW_SIDE_B] / (double)view->total[VIEW_SIDE_B]);
    }
}

/* A number with three digits that count, or whole with separators below a million. */
static void write_scaled(double value, const char *unit, char text[PICTURE_VALUE_BYTES])
{
    double size = fabs(value);
    int decimals = size >= 100 || size == floor(size) ? 0 : size >= 10 ? 1 : 2;
    snprintf(text, PICTURE_VALUE_BYTES, "%.*f%s%s", decimals, value, *unit ? " " : "", unit);
}

static void write_count(double value, const char *unit, char text[PICTURE_VALUE_BYTES])
{
    static const char *const powers[] = {"", " k", " M", " G", " T", " P", " E"};
    if (fabs(value) < 1e6) {
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
    for (; fabs(value) >= 1000 && power < 6; power++)
        value /= 1000;
    snprintf(text, PICTURE_VALUE_BYTES, "%.*f%s%s%s", fabs(value) >= 100 ? 0 : 2, value,
             powers[power], *unit ? " " : "", unit);
}

/* steps: the next unit's size in this one, ended by 0. */
static void write_steps(double value, const char *const *names, const double *steps,
                        char text[PICTURE_VALUE_BYTES])
{
    size_t i = 0;
    while (steps[i] > 0 && fabs(value) >= steps[i])
        value /= steps[i++];
    write_scaled(value, names[i], text);
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
    const unsigned decimals = folded_unit_decimals(unit);
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
