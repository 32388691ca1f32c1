#include "api/share/oembed.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_response.h"
#include "api/http/problem.h"
#include "api/share/share.h"
#include "api/share/short_link.h"
#include "api/share/viewer_path.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/picture/picture.h"

struct embed {
    struct viewer_path path;
    struct share_public_metadata metadata[2]; /* one per id */
    int64_t width;
    int64_t height;
    bool is_thumbnail_allowed;
};

static enum err_code refuse_url(struct err *err)
{
    return err_set(
        err, ERR_NOT_FOUND,
        "url is not a page of a share on this server: it has the form /p/<id>, /d/<id>..<id>, "
        "/s/<id> or /embed/<id>");
}

/* Removes prefix from text; false if text does not start with it. */
static bool cut_prefix(struct span *text, const char *prefix)
{
    size_t size = strlen(prefix);
    if (!span_starts_with(*text, prefix))
        return false;
    *text = span_of(text->data + size, text->size - size);
    return true;
}

/* "<id>..<id>", possibly with a query, which may contain dots. */
static bool is_pair(struct span text)
{
    struct span ids, query;
    if (!span_split(text, '?', &ids, &query))
        ids = text;
    return ids.size && memmem(ids.data, ids.size, "..", 2);
}

/* The path "/p/…" of url; for a short link, the page that it leads to. */
static enum err_code read_path(struct request *request, struct span url, struct span *ret_path,
                               struct err *err)
{
    struct span path, rest, fragment;
    const char *target;
    if (!cut_prefix(&url, request->server->settings->public_url))
        return refuse_url(err);
    if (!span_split(url, '#', &path, &fragment))
        path = url;
    *ret_path = rest = path;
    if (cut_prefix(&rest, "/embed/"))
        *ret_path = span_text(
            arena_printf(request->arena, "/%c/%.*s", is_pair(rest) ? 'd' : 'p', SPAN_PRINT(rest)));
    if (!cut_prefix(&rest, "/s/"))
        return ERR_NONE;
    enum err_code code = short_link_find(request, rest, &target, NULL, err);
    if (code)
        return code;
    *ret_path = span_text(target);
    return ERR_NONE;
}

static enum err_code find_metadata(struct request *request, struct span id,
                                   struct share_public_metadata *metadata, struct err *err)
{
    enum err_code code =
        share_find_public_metadata(request->server, id, request->arena, metadata, err);
    if (code == ERR_GONE)
        return err_set(err, ERR_NOT_FOUND, "this share is gone");
    if (!code && !metadata->may_preview)
        return err_set(
            err, ERR_UNAUTHENTICATED,
            "not everyone who has the link may see this profile, so it cannot be embedded");
    return code;
}

static enum err_code find_share(struct request *request, struct embed *embed, struct err *err)
{
    struct span url, path;
    struct err malformed;
    if (!request_query(request, "url", &url) || url.size == 0)
        return err_set(err, ERR_INVALID, "url is missing: the address of a share's page");
    enum err_code code = read_path(request, url, &path, err);
    if (code)
        return code;
    if (viewer_path_parse(path, &embed->path, &malformed))
        return refuse_url(err);
    for (size_t i = 0; i < embed->path.id_count && !code; i++)
        code = find_metadata(request, embed->path.ids[i], &embed->metadata[i], err);
    return code;
}

static enum err_code read_size(struct request *request, struct embed *embed, struct err *err)
{
    int64_t width, height;
    enum err_code code =
        request_query_i64(request, "maxwidth", 1, INT32_MAX, OEMBED_MAX_SIZE, &width, err);
    if (code)
        return code;
    code = request_query_i64(request, "maxheight", 1, INT32_MAX, OEMBED_MAX_SIZE, &height, err);
    if (code)
        return code;
    embed->width = width < OEMBED_WIDTH ? width : OEMBED_WIDTH;
    embed->height = height < OEMBED_HEIGHT ? height : OEMBED_HEIGHT;
    embed->is_thumbnail_allowed = width >= PICTURE_PNG_WIDTH && height >= PICTURE_PNG_HEIGHT;
    return ERR_NONE;
}

static bool is_comparison(const struct embed *embed)
{
    return embed->path.id_count == 2;
}

static const char *address_of(struct request *request, const struct embed *embed,
                              const char *before, const char *behind)
{
    const struct span a = embed->path.ids[0];
    const struct span b = is_comparison(embed) ? embed->path.ids[1] : span_of(NULL, 0);
    return arena_printf(request->arena, "%s%s%.*s%s%.*s%s%s%.*s",
                        request->server->settings->public_url, before, SPAN_PRINT(a),
                        b.size ? ".." : "", SPAN_PRINT(b), behind,
                        embed->path.query.size ? "?" : "", SPAN_PRINT(embed->path.query));
}

static const char *title_of(const struct request *request, const struct embed *embed)
{
    const char *a = embed->metadata[0].title, *b = embed->metadata[1].title;
    if (!is_comparison(embed))
        return a[0] ? a : "A profile";
    return a[0] && b[0] ? arena_printf(request->arena, "%s → %s", a, b) : "Two profiles compared";
}

static const char *frame_html(struct request *request, const struct embed *embed)
{
    buf_auto html;
    buf_init(&html, 1 << 20);
    buf_append_text(&html, "<iframe src=\"");
    buf_append_html(&html, span_text(address_of(request, embed, "/embed/", "")));
    buf_printf(&html, "\" width=\"%d\" height=\"%d\" title=\"", (int)embed->width,
               (int)embed->height);
    buf_append_html(&html, span_text(title_of(request, embed)));
    buf_append_text(&html, "\" loading=\"lazy\" referrerpolicy=\"no-referrer\""
                           " style=\"border:0\" allowfullscreen></iframe>");
    return arena_strndup(request->arena, html.data, html.size);
}

static void append_members(struct request *request, const struct embed *embed,
                           struct json_response *oembed)
{
    json_response_text(oembed, "version", "1.0");
    json_response_text(oembed, "type", "rich");
    json_response_text(oembed, "provider_name", "Perfolio");
    json_response_text(oembed, "provider_url", request->server->settings->public_url);
    json_response_text(oembed, "title", title_of(request, embed));
    json_response_i64(oembed, "cache_age", 3600);
    json_response_i64(oembed, "width", embed->width);
    json_response_i64(oembed, "height", embed->height);
    json_response_text(oembed, "html", frame_html(request, embed));
    if (!embed->is_thumbnail_allowed)
        return;
    json_response_text(oembed, "thumbnail_url",
                       address_of(request, embed, is_comparison(embed) ? "/d/" : "/p/", "/og.png"));
    json_response_i64(oembed, "thumbnail_width", PICTURE_PNG_WIDTH);
    json_response_i64(oembed, "thumbnail_height", PICTURE_PNG_HEIGHT);
}

/* Whether format is "json" or absent. */
static bool wants_json(const struct request *request)
{
    struct span format;
    return !request_query(request, "format", &format) || span_equal_text(format, "json");
}

static enum err_code get_oembed(struct request *request, struct response *response, struct err *err)
{
    static const char *const single[] = {"url", "format", "maxwidth", "maxheight", NULL};
    struct embed *embed = arena_new(request->arena, struct embed, 1);
    enum err_code code = request_check_parameters(request, single, NULL, err);
    if (code)
        return code;
    if (!wants_json(request)) {
        err_set(err, ERR_UNSUPPORTED, "format must be json, the only supported one");
        problem_respond(request, response, 501, err);
        return ERR_NONE;
    }
    code = read_size(request, embed, err);
    if (code)
        return code;
    code = find_share(request, embed, err);
    if (code)
        return code;
    json_response_auto oembed;
    json_response_init(&oembed);
    json_response_open(&oembed, NULL, '{');
    append_members(request, embed, &oembed);
    json_response_close(&oembed, '}');
    response_add(request, response, "cache-control", "public, no-cache");
    return response_buf(request, response, 200, "application/json", &oembed.json, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/oembed", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404 | ROUTE_CORS, 0, get_oembed},
};

const struct route_table oembed_routes = {routes, sizeof(routes) / sizeof(*routes)};
