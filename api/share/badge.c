#include "api/share/badge.h"

#include "api/core/assets.h"
#include "api/report/report_write.h"
#include "api/report/viewer_url_state.h"
#include "api/share/share.h"
#include "api/share/share_access.h"
#include "api/share/share_report.h"
#include "api/share/share_summary.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/quantity.h"
#include "lib/profile/report/flame.h"

#include <math.h>

/* Pixels. */
enum { HEIGHT = 20, PADDING = 6, BASELINE = 14, FONT_SIZE = 11, BADGE_BYTES = 65536 };
/* Increment it when the same share gets another picture. */
enum { BADGE_VERSION = 3 };
#define FONT_FAMILY "'DejaVu Sans',Verdana,Geneva,sans-serif"
static const char label[] = "profile";

/* "cpu" is an abbreviation; names of other types are unchanged. */
static const char *type_name(struct arena *arena, struct span type)
{
    enum { NAME_BYTES = 40 };
    if (span_equal_text(type, "cpu"))
        return "CPU";
    size_t size = type.size < NAME_BYTES ? type.size : NAME_BYTES;
    while (size < type.size && size && (type.data[size] & 0xc0) == 0x80)
        size--; /* not within a character */
    return arena_strndup(arena, type.data, size);
}

/* "12.3 s CPU", "1,234 samples"; if the unit repeats the type, only the unit; empty if reports
 * refuse to add the values. */
static const char *value_text(struct arena *arena, const struct share_total *total)
{
    char value[QUANTITY_TEXT_BYTES];
    if (!total->is_known)
        return "total too large";
    quantity_format((double)total->value, total->unit, value);
    bool is_type_redundant = total->type.size == 0 || span_equal(total->type, total->unit);
    return arena_printf(arena, "%s%s%s", value, is_type_redundant ? "" : " ",
                        is_type_redundant ? "" : type_name(arena, total->type));
}

static void append_text(struct buf *svg, const char *text, double left, double width)
{
    buf_printf(svg, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\">", left, BASELINE, width);
    buf_append_html(svg, span_text(text));
    buf_append_text(svg, "</text>\n");
}

static enum err_code draw_badge(const char *value, struct buf *svg, struct err *err)
{
    double label_width, value_width;
    const struct asset *font = assets_find(SPAN_LITERAL("DejaVuSans.ttf"));
    if (!font)
        return err_set(err, ERR_INTERNAL, "the font is missing in the assets");
    enum err_code code =
        picture_text_width(font->bytes, FONT_SIZE, span_text(label), &label_width, err);
    if (code)
        return code;
    code = picture_text_width(font->bytes, FONT_SIZE, span_text(value), &value_width, err);
    if (code)
        return code;
    int middle = (int)ceil(label_width) + 2 * PADDING;
    int width = middle + (int)ceil(value_width) + 2 * PADDING;
    buf_printf(svg,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" role=\"img\" "
               "aria-label=\"%s: ",
               width, HEIGHT, label);
    buf_append_html(svg, span_text(value));
    buf_printf(svg, "\">\n<title>%s: ", label);
    buf_append_html(svg, span_text(value));
    buf_printf(
        svg,
        "</title>\n<clipPath id=\"r\"><rect width=\"%d\" height=\"%d\" rx=\"3\"/></clipPath>\n"
        "<g clip-path=\"url(#r)\"><rect width=\"%d\" height=\"%d\" fill=\"#444d56\"/>"
        "<rect x=\"%d\" width=\"%d\" height=\"%d\" fill=\"#9a4a00\"/></g>\n"
        "<g fill=\"#fff\" font-family=\"" FONT_FAMILY "\" font-size=\"%d\">\n",
        width, HEIGHT, middle, HEIGHT, middle, width - middle, HEIGHT, FONT_SIZE);
    append_text(svg, label, PADDING, label_width);
    append_text(svg, value, middle + PADDING, value_width);
    buf_append_text(svg, "</g>\n</svg>\n");
    return ERR_NONE;
}

static const char *etag_of(struct arena *arena, const struct share *share, struct span type)
{
    char hex[DIGEST_HEX_BYTES];
    buf_auto name;
    buf_init(&name, BADGE_BYTES);
    buf_append_url(&name, type);
    digest_hex(share->raw_sha256, hex);
    return arena_printf(arena, "W/\"badge%d-%.32s-%.*s\"", BADGE_VERSION, hex,
                        SPAN_PRINT(buf_span(&name)));
}

/* ---- of a view ---- */

/* "3.20 s CPU (26.0 %)": the sum that the rules keep. */
static const char *kept_text(struct arena *arena, const struct view *view)
{
    const int64_t kept = view->kept[VIEW_SIDE_B], total = view->total[VIEW_SIDE_B];
    const struct share_total shown = {
        .is_known = true, .value = kept, .type = view_sample_type(view), .unit = view_unit(view)};
    const char *text = value_text(arena, &shown);
    if (kept == total || total == 0)
        return text;
    char share[QUANTITY_TEXT_BYTES];
    return arena_printf(arena, "%s (%s)", text,
                        quantity_format_percent(100 * (double)kept / (double)total, share));
}

static enum err_code write_badge(const struct report *report, struct arena *arena,
                                 const struct profile *profile, const struct view *view,
                                 struct buf *output, struct err *err)
{
    (void)profile;
    const char *kept = kept_text(arena, view);
    struct span seen = {0};
    enum err_code code = ERR_NONE;
    if (report->search.size || report->zoom)
        code = report_write_seen(report, arena, view, &seen, err);
    if (code)
        return code;
    if (seen.size)
        kept = arena_printf(arena, "%s \xc2\xb7 %.*s", kept, SPAN_PRINT(seen));
    return draw_badge(kept, output, err);
}

static const struct report_kind report_badge = {.name = "badge",
                                                .content_type = "image/svg+xml",
                                                .needs_view = true,
                                                .shows_zoom = true,
                                                .write = write_badge};

/* Whether the address selects more than one of the row's totals. */
static bool has_to_count(const struct viewer_url_state *page)
{
    return page->rule_count || page->chain_count || page->search.size || page->zoom;
}

static enum err_code get_counted(struct request *request, struct response *response,
                                 struct err *err)
{
    struct share_report *share_report = arena_new(request->arena, struct share_report, 1);
    enum err_code code =
        share_report_read(request, &report_badge, REPORT_TAKES_VIEW | REPORT_TAKES_PAGE,
                          FLAME_NODES_DEFAULT, 1, share_report, err);
    return code ? code : share_report_respond(request, response, share_report, err);
}

/* ---- of a share ---- */

/* Mark, colours and window do not change a badge, as in other files. */
static enum err_code check_names(const struct request *request, struct err *err)
{
    static const char *const own[] = {"sample_type", "names", NULL};
    struct span version;
    if (request_query(request, "sv", &version))
        return ERR_NONE; /* written by a page, possibly of a later version */
    return request_check_parameters(request, own, viewer_url_state_names, err);
}

static enum err_code get_total(struct request *request, struct response *response, struct span type,
                               struct err *err)
{
    struct share share;
    struct share_total total;
    enum err_code code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    share_access_add_robots(request, response, &share);
    response->is_open_to_sites = share_access_is_open(&share);
    if (response_is_cached(request, response, etag_of(request->arena, &share, type),
                           share_access_cache_control(&share)))
        return ERR_NONE;
    code = share_summary_read_total(share.summary, type, request->arena, &total, err);
    if (code)
        return code == ERR_INVALID ? err_add(err, "st") : code;
    buf_auto svg;
    buf_init(&svg, BADGE_BYTES);
    code = draw_badge(value_text(request->arena, &total), &svg, err);
    return code ? code : response_buf(request, response, 200, "image/svg+xml", &svg, err);
}

/* The total is in the row; with parameters of a view it has to be computed. */
static enum err_code get_badge(struct request *request, struct response *response, struct err *err)
{
    struct viewer_url_state *page = arena_new(request->arena, struct viewer_url_state, 1);
    enum err_code code = check_names(request, err);
    if (code)
        return code;
    viewer_url_state_read(request, page);
    return has_to_count(page) ? get_counted(request, response, err)
                              : get_total(request, response, page->sample_type, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/p/{id}/badge.svg", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404 | ROUTE_CORS_IF_OPEN, 0,
     get_badge},
};

const struct route_table badge_routes = {routes, sizeof(routes) / sizeof(*routes)};
