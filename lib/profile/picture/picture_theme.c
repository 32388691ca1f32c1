#include "lib/profile/picture/picture_theme.h"

#include <math.h>

/* Warm hues are closer together than cold ones, because the eye distinguishes them better. */
static const double hues[PICTURE_HUES] = {36, 62,  84,  20, 106, 134, 50,  164,
                                          72, 196, 228, 8,  258, 288, 322, 350};

static uint32_t channel(double linear)
{
    const double clipped = fmin(1, fmax(0, linear));
    return (uint32_t)lround(
        255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * pow(clipped, 1 / 2.4) - 0.055));
}

static double cube(double value)
{
    return value * value * value;
}

/* lightness 0 to 1, chroma 0 to 0.4, hue in degrees; clipped to what a screen shows. */
static uint32_t oklch(double lightness, double chroma, double hue)
{
    const double a = chroma * cos(hue * M_PI / 180), b = chroma * sin(hue * M_PI / 180);
    const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
    const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
    const double s = cube(lightness - 0.0894841775 * a - 1.291485548 * b);
    return channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) << 16 |
           channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) << 8 |
           channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);
}

/* Relative luminance as defined by WCAG 2, 0 to 1. */
static double luminance(uint32_t colour)
{
    static const double weights[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        const double part = (double)(colour >> (16 - 8 * i) & 0xff) / 255;
        sum += weights[i] * (part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(uint32_t a, uint32_t b)
{
    const double x = luminance(a), y = luminance(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

uint32_t picture_mix(uint32_t from, uint32_t to, double part)
{
    uint32_t mixed = 0;
    for (unsigned shift = 0; shift <= 16; shift += 8) {
        const double a = from >> shift & 0xff, b = to >> shift & 0xff;
        mixed |= (uint32_t)lround(a + (b - a) * part) << shift;
    }
    return mixed;
}

/* Warm hues are more saturated than the others, as in usual flame graphs. */
static uint32_t hue_fill(int hue, int shade, bool is_dark)
{
    const bool is_neutral = hue == PICTURE_NEUTRAL_HUE;
    const double degrees = is_neutral ? 260 : hues[hue];
    const bool is_warm = !is_neutral && degrees >= 20 && degrees <= 110;
    const double chroma = is_neutral ? 0.012
                          : is_warm  ? (is_dark ? 0.092 : 0.098)
                                     : (is_dark ? 0.06 : 0.058);
    const double lightness =
        (is_dark ? 0.42 + 0.032 * shade : 0.795 + 0.028 * shade) + (is_warm && is_dark ? 0.02 : 0);
    return oklch(lightness, chroma, degrees);
}

/* From little to much. The steps differ in lightness, so they are distinguishable with any colour
 * vision. */
static uint32_t heat_fill(int step, bool is_dark)
{
    const double strength = (double)step / (PICTURE_HEAT_STEPS - 1);
    if (step == 0)
        return is_dark ? oklch(0.27, 0.006, 80) : oklch(0.945, 0.008, 80);
    return is_dark ? oklch(0.27 + 0.58 * strength, 0.05 + 0.1 * strength, 10 + 75 * strength)
                   : oklch(0.96 - 0.56 * strength, 0.05 + 0.1 * strength, 90 - 78 * strength);
}

/* Blue and orange, which are distinguishable with every common kind of colour blindness. */
static uint32_t diff_fill(int step, bool is_dark)
{
    const double strength = fabs((double)step) / PICTURE_DIFF_STEPS, hue = step < 0 ? 250 : 48;
    return is_dark ? oklch(0.36 + 0.2 * strength, 0.006 + 0.124 * strength, hue)
                   : oklch(0.925 - 0.2 * strength, 0.006 + 0.124 * strength, hue);
}

/* The first ink, from index `from` on, that has enough contrast to the fill; else the last. */
static uint8_t ink_on(const struct picture_theme *theme, uint32_t fill, uint8_t from)
{
    static const double LEAST_CONTRAST = 4.5;
    while (from + 1 < PICTURE_INKS && contrast(theme->inks[from], fill) < LEAST_CONTRAST)
        from++;
    return from;
}

void picture_theme_init(struct picture_theme *theme, bool is_dark)
{
    *theme = (struct picture_theme){
        .background = is_dark ? 0x15130f : 0xfaf8f4,
        .text = is_dark ? 0xf3efe9 : 0x1f1a14,
        .faint_text = is_dark ? 0x938d83 : 0x6f695f,
    };
    /* The first ink is for frames that a search did not match. */
    theme->inks[0] = theme->faint_text;
    theme->inks[1] = theme->text;
    theme->inks[2] = is_dark ? 0x0d0a06 : 0xffffff;
    theme->inks[3] = is_dark ? 0xffffff : 0x0d0a06;
    uint32_t *fill = theme->fills;
    for (int hue = 0; hue <= PICTURE_NEUTRAL_HUE; hue++) {
        for (int shade = 0; shade < PICTURE_SHADES; shade++)
            *fill++ = hue_fill(hue, shade, is_dark);
    }
    for (int step = 0; step < PICTURE_HEAT_STEPS; step++)
        *fill++ = heat_fill(step, is_dark);
    for (int step = -PICTURE_DIFF_STEPS; step <= PICTURE_DIFF_STEPS; step++)
        *fill++ = diff_fill(step, is_dark);
    theme->fills[PICTURE_ROOT_COLOUR] = is_dark ? 0x322e27 : 0xe4dfd6;
    theme->fills[PICTURE_PALE_COLOUR] = is_dark ? 0x25221c : 0xefece6;
    for (int i = 0; i < PICTURE_COLOUR_COUNT; i++)
        theme->ink_of[i] = ink_on(theme, theme->fills[i], i == PICTURE_PALE_COLOUR ? 0 : 1);
}

uint32_t picture_diff_colour(int64_t before, int64_t after)
{
    /* A smaller share counts as equal. The share is clamped to [-1, 1], because a change from a
     * negative to a positive value is larger than either side. */
    static const double LEAST_CHANGE = 0.005;
    const double a = (double)before, b = (double)after, larger = fmax(fabs(a), fabs(b));
    const double share = larger > 0 ? fmax(-1, fmin(1, (b - a) / larger)) : 0;
    int step = 0;
    if (fabs(share) >= LEAST_CHANGE) {
        /* The square root gives small changes, which are the most common, more steps. */
        step = (int)lround(sqrt(fabs(share)) * PICTURE_DIFF_STEPS);
        step = step < 1 ? 1 : step;
    }
    return (uint32_t)(PICTURE_DIFF_COLOUR + PICTURE_DIFF_STEPS + (share < 0 ? -step : step));
}
