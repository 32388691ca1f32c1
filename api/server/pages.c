#include "api/server/pages.h"

#include "api/core/assets.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/local_ca.h"
#include "api/http/problem.h"
#include "api/report/viewer_url_state.h"
#include "api/share/share.h"
#include "api/share/viewer_path.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <ctype.h>
#include <string.h>

enum { MAX_PAGE_BYTES = 256 << 10, MAX_DESCRIPTION_BYTES = 200, MAX_QUERY_BYTES = 16384 };

static const char head_marker[] = "<!--perfolio:head-->";
static const char site_name[] = "Perfolio";

#define POLICY(frame_ancestors)                                                                    \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; "                 \
    "frame-ancestors " frame_ancestors "; require-trusted-types-for 'script'"

const char *const pages_content_security_policy = POLICY("'none'");
const char *const pages_framed_content_security_policy = POLICY("*");

/* The head of one page; texts are plain and are escaped when written. */
struct head {
    struct span title;
    struct span description;
    struct span path;        /* of the shown page; empty: the request's, without a query */
    struct span image_path;  /* empty: none */
    struct span oembed_path; /* empty: none */
    bool may_index;
};

static struct span public_url(const struct request *request)
{
    return span_text(request->server->settings->public_url);
}

static void append_meta(struct buf *buf, const char *key, const char *name, struct span content)
{
    buf_printf(buf, "<meta %s=\"%s\" content=\"", key, name);
    buf_append_html(buf, content);
    buf_append_text(buf, "\">\n");
}

static void append_meta_url(struct buf *buf, const char *name, const struct request *request,
                            struct span path)
{
    buf_printf(buf, "<meta property=\"%s\" content=\"", name);
    buf_append_html(buf, public_url(request));
    buf_append_html(buf, path);
    buf_append_text(buf, "\">\n");
}

static void append_head(struct buf *buf, const struct request *request, const struct head *head)
{
    buf_append_text(buf, "<title>");
    buf_append_html(buf, head->title);
    buf_append_text(buf, "</title>\n");
    append_meta(buf, "property", "og:site_name", span_text(site_name));
    append_meta(buf, "property", "og:type", SPAN_LITERAL("website"));
    append_meta(buf, "property", "og:title", head->title);
    if (head->description.size > 0) {
        append_meta(buf, "property", "og:description", head->description);
        append_meta(buf, "name", "description", head->description);
    }
    append_meta_url(buf, "og:url", request, head->path.size ? head->path : request->path);
    if (head->image_path.size > 0) {
        append_meta_url(buf, "og:image", request, head->image_path);
        append_meta(buf, "name", "twitter:card", SPAN_LITERAL("summary_large_image"));
    }
    if (head->oembed_path.size > 0) {
        buf_append_text(buf, "<link rel=\"alternate\" type=\"application/json+oembed\" href=\"");
        buf_append_html(buf, public_url(request));
        buf_append_html(buf, head->oembed_path);
        buf_append_text(buf, "\">\n");
    }
    if (!head->may_index)
        append_meta(buf, "name", "robots", SPAN_LITERAL("noindex"));
}

/* Responds with the HTML, its marker replaced. */
static enum err_code respond_shell(struct request *request, struct response *response, int status,
                                   const struct head *head, struct err *err)
{
    const struct asset *shell = assets_find(SPAN_LITERAL("web/index.html"));
    if (!shell)
        return err_set(err, ERR_INTERNAL, "this build contains no web pages");
    const uint8_t *marker =
        memmem(shell->bytes.data, shell->bytes.size, head_marker, sizeof(head_marker) - 1);
    if (!marker)
        return err_set(err, ERR_INTERNAL, "web/index.html has no %s", head_marker);
    size_t before = (size_t)(marker - shell->bytes.data);
    size_t after = before + sizeof(head_marker) - 1;
    buf_auto page;
    buf_init(&page, MAX_PAGE_BYTES);
    buf_append(&page, shell->bytes.data, before);
    append_head(&page, request, head);
    buf_append(&page, shell->bytes.data + after, shell->bytes.size - after);
    if (!head->may_index)
        response_add(request, response, "x-robots-tag", "noindex");
    response_add(request, response, "cache-control", "no-cache");
    response->may_compress = true;
    return response_buf(request, response, status, "text/html; charset=utf-8", &page, err);
}

/* The first MAX_DESCRIPTION_BYTES of a Markdown text, on one line, cut between characters. */
static struct span summary_of(struct arena *arena, const char *markdown)
{
    char *text = arena_strdup(arena, markdown);
    size_t size = 0;
    bool was_blank = true;
    for (const char *at = markdown; *at && size < MAX_DESCRIPTION_BYTES; at++) {
        bool is_blank = (unsigned char)*at <= ' ';
        if (is_blank && was_blank)
            continue;
        text[size++] = is_blank ? ' ' : *at;
        was_blank = is_blank;
    }
    while (size > 0 && size >= MAX_DESCRIPTION_BYTES - 4 && ((unsigned char)text[size - 1] & 0x80))
        size--; /* perhaps the start of a character that was cut */
    return span_trim(span_of(text, size));
}

/* A share's title, and the status of its page. */
static enum err_code find_share(struct request *request, struct span id, int *status,
                                struct share_public_metadata *metadata, struct err *err)
{
    *metadata = (struct share_public_metadata){.title = "", .description = "", .facts = ""};
    enum err_code code =
        share_find_public_metadata(request->server, id, request->arena, metadata, err);
    if (code == ERR_NOT_FOUND || code == ERR_GONE) {
        *metadata = (struct share_public_metadata){.title = "", .description = "", .facts = ""};
        *status = problem_status(code);
        return ERR_NONE;
    }
    return code;
}

static struct span share_title(struct request *request, int status,
                               const struct share_public_metadata *metadata)
{
    if (status != 200)
        return span_text(status == 410 ? "Gone · Perfolio" : "Not found · Perfolio");
    if (metadata->title[0] == '\0')
        return SPAN_LITERAL("A profile · Perfolio");
    return span_text(arena_printf(request->arena, "%s · Perfolio", metadata->title));
}

/* The path of the picture of the view in the page's address; page is its path. */
static struct span preview_path(struct request *request, struct span page)
{
    buf_auto query;
    buf_init(&query, MAX_QUERY_BYTES);
    viewer_url_state_append_query(request, &query);
    if (buf_failed(&query))
        buf_clear(&query);
    return span_text(arena_printf(request->arena, "%.*s/og.png%s%.*s", SPAN_PRINT(page),
                                  query.size ? "?" : "", SPAN_PRINT(buf_span(&query))));
}

/* Whether the request has a query that is allowed in addresses. */
static bool has_query(const struct request *request)
{
    struct err ignored;
    return request->query.size > 0 && request->query.size <= MAX_QUERY_BYTES &&
           !viewer_path_check_query("query", request->query, &ignored);
}

/* The page's own address, including its view. */
static struct span page_path(struct request *request)
{
    if (!has_query(request))
        return request->path;
    return span_text(arena_printf(request->arena, "%.*s?%.*s", SPAN_PRINT(request->path),
                                  SPAN_PRINT(request->query)));
}

/* The address at which consumers of oEmbed learn how to embed the page, including its view. */
static struct span oembed_path(struct request *request)
{
    buf_auto path;
    buf_init(&path, 4 * (size_t)MAX_QUERY_BYTES);
    buf_append_text(&path, "/oembed?format=json&url=");
    buf_append_url(&path, public_url(request));
    buf_append_url(&path, request->path);
    if (has_query(request)) {
        buf_append_url(&path, SPAN_LITERAL("?"));
        buf_append_url(&path, request->query);
    }
    return span_of(arena_strndup(request->arena, path.data, path.size), path.size);
}

/* For shares that everyone who has the link may see. */
static void add_previews(struct request *request, struct head *head)
{
    head->path = page_path(request);
    head->image_path = preview_path(request, request->path);
    head->oembed_path = oembed_path(request);
}

static enum err_code get_share_page(struct request *request, struct response *response,
                                    struct err *err)
{
    int status = 200;
    struct share_public_metadata metadata;
    struct span id = request->path_params[0];
    enum err_code code = find_share(request, id, &status, &metadata, err);
    if (code)
        return code;
    struct head head = {.title = share_title(request, status, &metadata),
                        .description = summary_of(
                            request->arena, arena_printf(request->arena, "%s %s", metadata.facts,
                                                         metadata.description)),
                        .may_index = status == 200 && metadata.may_index};
    if (status == 200 && metadata.may_preview)
        add_previews(request, &head);
    return respond_shell(request, response, status, &head, err);
}

/* Redirects a link that was copied with a slash at its end. Whether the share exists is not
 * checked; but the path was decoded, and for an id it is the same as before. */
static enum err_code drop_slash(struct request *request, struct response *response, struct err *err)
{
    const struct span path = request->path, query = request->query;
    for (size_t i = 0; i < path.size; i++) {
        if (!isalnum(path.data[i]) && path.data[i] != '/' && path.data[i] != '.')
            return err_set(err, ERR_NOT_FOUND, "there is no such page");
    }
    response_add(request, response, "location",
                 arena_printf(request->arena, "%.*s%s%.*s", (int)path.size - 1,
                              (const char *)path.data, query.size ? "?" : "", (int)query.size,
                              (const char *)query.data));
    response->status = 308;
    return ERR_NONE;
}

/* Two compared shares. */
struct pair {
    struct share_public_metadata a, b;
    int status;
};

static enum err_code find_pair(struct request *request, struct pair *ret_pair, struct err *err)
{
    int status_a = 200, status_b = 200;
    enum err_code code = find_share(request, request->path_params[0], &status_a, &ret_pair->a, err);
    if (code == ERR_NONE)
        code = find_share(request, request->path_params[1], &status_b, &ret_pair->b, err);
    ret_pair->status = status_a > status_b ? status_a : status_b;
    return code;
}

static bool pair_may_preview(const struct pair *pair)
{
    return pair->status == 200 && pair->a.may_preview && pair->b.may_preview;
}

/* For link previews without the picture: both totals and top functions. */
static struct span pair_description(struct arena *arena, const struct pair *pair)
{
    if (!*pair->a.facts || !*pair->b.facts)
        return (struct span){0};
    return summary_of(arena,
                      arena_printf(arena, "Before: %s After: %s", pair->a.facts, pair->b.facts));
}

static struct span pair_title(struct request *request, const struct pair *pair)
{
    if (pair->a.title[0] == '\0' || pair->b.title[0] == '\0')
        return SPAN_LITERAL("Two profiles compared · Perfolio");
    return span_text(
        arena_printf(request->arena, "%s → %s · Perfolio", pair->a.title, pair->b.title));
}

/* Responds with a plain text without scripts: the viewer would show a profile that must not be
 * shown in a frame. */
static enum err_code respond_not_embeddable(struct request *request, struct response *response)
{
    response_add(request, response, "cache-control", "no-cache");
    response_add(request, response, "x-robots-tag", "noindex");
    response_bytes(
        response, 403, "text/html; charset=utf-8",
        SPAN_LITERAL("<!doctype html>\n<html lang=\"en\">\n<title>Not embeddable</title>\n"
                     "<p>This profile is not for everybody who has its link, so it "
                     "cannot be embedded in other pages.</p>\n"));
    return ERR_NONE;
}

/* In a frame of another site the browser sends no cookies of this server, so the frame can only
 * show shares that anyone with the link may see. */
static enum err_code get_embed_page(struct request *request, struct response *response,
                                    struct err *err)
{
    int status = 200;
    struct share_public_metadata metadata;
    enum err_code code = find_share(request, request->path_params[0], &status, &metadata, err);
    if (code)
        return code;
    if (status == 200 && !metadata.may_preview)
        return respond_not_embeddable(request, response);
    response->may_be_framed = status == 200;
    struct head head = {.title = share_title(request, status, &metadata)};
    return respond_shell(request, response, status, &head, err);
}

static enum err_code get_embed_pair_page(struct request *request, struct response *response,
                                         struct err *err)
{
    struct pair pair;
    enum err_code code = find_pair(request, &pair, err);
    if (code)
        return code;
    if (pair.status == 200 && !pair_may_preview(&pair))
        return respond_not_embeddable(request, response);
    response->may_be_framed = pair.status == 200;
    struct head head = {.title = pair_title(request, &pair)};
    return respond_shell(request, response, pair.status, &head, err);
}

static enum err_code get_delete_page(struct request *request, struct response *response,
                                     struct err *err)
{
    int status = 200;
    struct share_public_metadata metadata;
    enum err_code code = find_share(request, request->path_params[0], &status, &metadata, err);
    if (code)
        return code;
    struct head head = {.title = SPAN_LITERAL("Delete a profile · Perfolio")};
    return respond_shell(request, response, status, &head, err);
}

static enum err_code get_diff_page(struct request *request, struct response *response,
                                   struct err *err)
{
    struct pair pair;
    enum err_code code = find_pair(request, &pair, err);
    if (code)
        return code;
    struct head head = {.title = pair_title(request, &pair),
                        .description = pair_description(request->arena, &pair),
                        .may_index = pair.a.may_index && pair.b.may_index};
    if (pair_may_preview(&pair))
        add_previews(request, &head);
    return respond_shell(request, response, pair.status, &head, err);
}

static enum err_code get_home_page(struct request *request, struct response *response,
                                   struct err *err)
{
    struct head head = {
        .title = SPAN_LITERAL("Perfolio: a profile becomes a link"),
        .description = SPAN_LITERAL("Drop a CPU or heap profile, get a link to its flame graph."),
        .may_index = true};
    return respond_shell(request, response, 200, &head, err);
}

static enum err_code get_inner_page(struct request *request, struct response *response,
                                    struct err *err)
{
    struct head head = {.title = span_text(site_name)};
    return respond_shell(request, response, 200, &head, err);
}

static enum err_code get_problem_page(struct request *request, struct response *response,
                                      struct err *err)
{
    enum err_code problem = problem_find(request->path_params[0]);
    if (problem == ERR_NONE)
        return err_set(
            err, ERR_NOT_FOUND,
            "there is no kind of problem with that name: use the address in a problem's \"type\"");
    struct head head = {
        .title = span_text(arena_printf(request->arena, "%s · Perfolio", problem_title(problem))),
        .description = span_text(problem_explanation(problem)),
        .may_index = true};
    return respond_shell(request, response, 200, &head, err);
}

/* The compressed variant that the client accepts and the build made beside the file, or the file
 * itself, which is compressed for the response only if there is no variant. */
static const struct asset *choose_variant(struct request *request, struct response *response,
                                          const struct asset *asset)
{
    static const struct {
        const char *coding, *ending;
    } variants[] = {{"br", ".br"}, {"gzip", ".gz"}};
    bool has_variant = false;
    for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
        const char *name = arena_printf(request->arena, "%s%s", asset->name, variants[i].ending);
        const struct asset *variant = assets_find(span_text(name));
        if (!variant || variant->bytes.size >= asset->bytes.size)
            continue;
        if (!has_variant)
            response_add(request, response, "vary", "accept-encoding");
        has_variant = true;
        if (!request_accepts_encoding(request, variants[i].coding))
            continue;
        response_add(request, response, "content-encoding", variants[i].coding);
        return variant;
    }
    response->may_compress = !has_variant;
    return asset;
}

static enum err_code respond_asset(struct request *request, struct response *response,
                                   const char *name, const char *cache_control, struct err *err)
{
    const struct asset *asset = assets_find(span_text(name));
    if (!asset)
        return err_set(err, ERR_NOT_FOUND, "there is no such file: reload the page that uses it");
    response_add(request, response, "cache-control", cache_control);
    const char *content_type = assets_content_type(span_text(name));
    const struct asset *chosen = choose_variant(request, response, asset);
    response_bytes(response, 200, content_type, chosen->bytes);
    return ERR_NONE;
}

static enum err_code get_asset(struct request *request, struct response *response, struct err *err)
{
    const char *name =
        arena_printf(request->arena, "web/assets/%.*s", SPAN_PRINT(request->path_params[0]));
    return respond_asset(request, response, name, "public, max-age=31536000, immutable", err);
}

static enum err_code get_favicon(struct request *request, struct response *response,
                                 struct err *err)
{
    return respond_asset(request, response, "web/favicon.svg", "public, max-age=86400", err);
}

static enum err_code get_licenses(struct request *request, struct response *response,
                                  struct err *err)
{
    return respond_asset(request, response, "web/licenses.txt", "public, max-age=86400", err);
}

static enum err_code get_openapi(struct request *request, struct response *response,
                                 struct err *err)
{
    return respond_asset(request, response, "openapi.yaml", "public, max-age=3600", err);
}

/* Link preview services may read pages and pictures, of comparisons too; each response states
 * whether search engines may show it. */
static enum err_code get_robots(struct request *request, struct response *response, struct err *err)
{
    (void)err;
    response_add(request, response, "cache-control", "public, max-age=86400");
    response_bytes(response, 200, "text/plain; charset=utf-8",
                   SPAN_LITERAL("User-agent: *\nDisallow: /api/\nDisallow: /embed/\n"));
    return ERR_NONE;
}

static bool accepts_html(const struct request *request)
{
    struct span rest = request_field(request, "accept"), item, name, weight;
    while (rest.size) {
        span_split(rest, ',', &item, &rest);
        span_split(item, ';', &name, &weight);
        if (span_equal_text(span_trim(name), "text/html"))
            return !span_equal_text(span_trim(weight), "q=0");
    }
    return false;
}

bool pages_shows_error(const struct request *request, const struct err *problem)
{
    bool is_shown = request->is_page_malformed || problem->code == ERR_NOT_FOUND;
    return is_shown && (request->method == HTTP_GET || request->method == HTTP_HEAD) &&
           !span_starts_with(request->path, "/api/") &&
           !span_starts_with(request->path, "/assets/") && accepts_html(request);
}

enum err_code pages_respond_no_page(struct request *request, struct response *response,
                                    struct err *err)
{
    bool is_malformed = request->is_page_malformed;
    struct head head = {.title = is_malformed ? SPAN_LITERAL("Bad address · Perfolio")
                                              : SPAN_LITERAL("Not found · Perfolio")};
    response_add(request, response, "vary", "accept");
    return respond_shell(request, response, is_malformed ? 400 : 404, &head, err);
}

/* Pages contain no secrets: their content comes over the API, with its own checks. */
static const struct route routes[] = {
    {.method = HTTP_GET, .pattern = "/", .handle = get_home_page},
    {.method = HTTP_GET, .pattern = "/p/{id}", .flags = ROUTE_LIMIT_404, .handle = get_share_page},
    {.method = HTTP_GET,
     .pattern = "/embed/{a}..{b}",
     .flags = ROUTE_LIMIT_404,
     .handle = get_embed_pair_page},
    {.method = HTTP_GET,
     .pattern = "/embed/{id}",
     .flags = ROUTE_LIMIT_404,
     .handle = get_embed_page},
    {.method = HTTP_GET,
     .pattern = "/p/{id}/delete",
     .flags = ROUTE_LIMIT_404,
     .handle = get_delete_page},
    {.method = HTTP_GET,
     .pattern = "/d/{a}..{b}",
     .flags = ROUTE_LIMIT_404,
     .handle = get_diff_page},
    {.method = HTTP_GET, .pattern = "/p/{id}/", .flags = ROUTE_INLINE, .handle = drop_slash},
    {.method = HTTP_GET, .pattern = "/d/{a}..{b}/", .flags = ROUTE_INLINE, .handle = drop_slash},
    {.method = HTTP_GET, .pattern = "/login", .flags = ROUTE_INLINE, .handle = get_inner_page},
    {.method = HTTP_GET, .pattern = "/invite", .flags = ROUTE_INLINE, .handle = get_inner_page},
    {.method = HTTP_GET, .pattern = "/shares", .flags = ROUTE_INLINE, .handle = get_inner_page},
    {.method = HTTP_GET, .pattern = "/explore", .flags = ROUTE_INLINE, .handle = get_inner_page},
    {.method = HTTP_GET, .pattern = "/sources", .flags = ROUTE_INLINE, .handle = get_inner_page},
    {.method = HTTP_GET, .pattern = "/senders", .flags = ROUTE_INLINE, .handle = get_inner_page},
    {.method = HTTP_GET, .pattern = "/settings", .flags = ROUTE_INLINE, .handle = get_inner_page},
    {.method = HTTP_GET,
     .pattern = "/problems/{name}",
     .flags = ROUTE_INLINE,
     .handle = get_problem_page},
    {.method = HTTP_GET, .pattern = "/assets/{name}", .flags = ROUTE_INLINE, .handle = get_asset},
    {.method = HTTP_GET, .pattern = "/favicon.svg", .flags = ROUTE_INLINE, .handle = get_favicon},
    {.method = HTTP_GET, .pattern = "/licenses.txt", .flags = ROUTE_INLINE, .handle = get_licenses},
    {.method = HTTP_GET, .pattern = "/ca.crt", .handle = local_ca_get},
    {.method = HTTP_GET, .pattern = "/robots.txt", .flags = ROUTE_INLINE, .handle = get_robots},
    {.method = HTTP_GET,
     .pattern = "/api/openapi.yaml",
     .flags = ROUTE_INLINE | ROUTE_CORS,
     .handle = get_openapi},
};

const struct route_table pages_routes = {.routes = routes,
                                         .route_count = sizeof(routes) / sizeof(*routes)};
