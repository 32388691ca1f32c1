#include "cli/commands/query_text.h"

#include "cli/client.h"
#include "cli/linked_object.h"
#include "cli/source.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/input/suggest.h"
#include "lib/input/time_parse.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

enum {
    PATH_MAX_BYTES = 256 << 10,
    HOUR_S = 3600,
    SHOWN_BEFORE = 60,
    SHOWN_BEHIND = 30,
    SHOWN_SERVICES = 5
};

/* ---- windows ---- */

/* Whether one of the two times is valid; an error in the other one is reported by parse_window. */
static bool is_window(const char *text, int64_t now_ns)
{
    struct err ignored;
    int64_t time_ns;
    const char *dots = strstr(text, "..");
    const struct span first = dots ? span_of(text, (size_t)(dots - text)) : span_text(text);
    return !time_parse(first, now_ns, &time_ns, &ignored) ||
           (dots && !time_parse(span_text(dots + 2), now_ns, &time_ns, &ignored));
}

/* Finds the @ before the window; NULL: none. After labels any @ begins a window; elsewhere it must
 * be followed by a time, because values and names may contain an @. */
static const char *find_window(const char *text)
{
    const char *brace = strrchr(text, '}');
    const char *at = strrchr(brace ? brace : text, '@');
    if (brace && at)
        return strchr(brace, '@');
    if (!at)
        at = strrchr(text, '@');
    return at && is_window(at + 1, clock_wall_ns()) ? at : NULL;
}

bool query_text_is(const char *text, struct cli *cli)
{
    struct link link;
    if (link_is_url(text) || access(text, F_OK) == 0 || source_is_link(text, cli, &link))
        return false;
    return strchr(text, '{') || find_window(text);
}

static enum err_code check_time(const char *text, const char *name, int64_t now_ns, int64_t *ret_ns,
                                struct err *err)
{
    enum err_code code = time_parse(span_text(text), now_ns, ret_ns, err);
    return code ? err_add(err, "%s", name) : ERR_NONE;
}

/* Relative times are passed on unchanged, because the server's clock determines them. */
static enum err_code parse_window(const char *text, struct arena *arena,
                                  struct query_text *query_text, struct err *err)
{
    const int64_t now_ns = clock_wall_ns();
    int64_t start_ns, end_ns;
    const char *dots = strstr(text, "..");
    query_text->start = arena_strndup(arena, text, dots ? (size_t)(dots - text) : strlen(text));
    enum err_code code = check_time(query_text->start, "start", now_ns, &start_ns, err);
    if (code)
        return code;
    if (!dots) {
        if (__builtin_add_overflow(start_ns, HOUR_S * CLOCK_NS_PER_S, &end_ns))
            return err_set(err, ERR_INVALID, "start: '%s' is out of range", query_text->start);
        /* Absolute, so that a relative start and its end refer to the same time. */
        query_text->start = arena_printf(arena, "%" PRId64, start_ns);
        query_text->end = arena_printf(arena, "%" PRId64, end_ns);
        return ERR_NONE;
    }
    query_text->end = arena_strdup(arena, dots + 2);
    return check_time(query_text->end, "end", now_ns, &end_ns, err);
}

enum err_code query_text_parse(const char *text, struct cli *cli, struct query_text *ret_query,
                               struct err *err)
{
    const char *at = find_window(text);
    struct query_text query_text = {.selector = text};
    enum err_code code = ERR_NONE;
    if (at) {
        query_text.selector = arena_strndup(cli->arena, text, (size_t)(at - text));
        code = parse_window(at + 1, cli->arena, &query_text, err);
    }
    if (code) {
        query_text_point(cli, &query_text, err);
        return err_add(err, "the window %.100s", at);
    }
    *ret_query = query_text;
    return ERR_NONE;
}

enum err_code query_text_window(const struct query_text *query_text, int64_t now_ns,
                                struct query_text_window *ret_window, struct err *err)
{
    struct query_text_window window = {.end_ns = now_ns};
    enum err_code code = ERR_NONE;
    if (query_text->end)
        code = check_time(query_text->end, "end", now_ns, &window.end_ns, err);
    if (code)
        return code;
    if (query_text->start)
        code = check_time(query_text->start, "start", now_ns, &window.start_ns, err);
    else if (__builtin_sub_overflow(window.end_ns, HOUR_S * CLOCK_NS_PER_S, &window.start_ns))
        window.start_ns = INT64_MIN;
    if (code)
        return code;
    *ret_window = window;
    return ERR_NONE;
}

/* Formats a time as "2026-11-26 18:34:05", without the date if it is that of other. */
static const char *time_text(int64_t ns, const struct tm *other, struct tm *ret_parts,
                             struct arena *arena)
{
    char text[64];
    const time_t seconds = (time_t)(ns / CLOCK_NS_PER_S - (ns % CLOCK_NS_PER_S < 0));
    gmtime_r(&seconds, ret_parts);
    const bool is_same_day =
        other && other->tm_year == ret_parts->tm_year && other->tm_yday == ret_parts->tm_yday;
    strftime(text, sizeof(text), is_same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", ret_parts);
    return arena_strdup(arena, text);
}

void query_text_print_window(struct cli *cli, const char *name, const struct query_text *query_text,
                             const struct query_text_window *window)
{
    struct tm start, end;
    const char *from = time_text(window->start_ns, NULL, &start, cli->arena);
    const char *to = time_text(window->end_ns, &start, &end, cli->arena);
    terminal_note(&cli->terminal, "%s: %s to %s UTC  %.200s", name, from, to, query_text->selector);
}

/* ---- requests ---- */

void query_text_append(struct buf *path, const struct query_text *query_text)
{
    client_append_parameter(path, "query", query_text->selector);
    client_append_parameter(path, "start", query_text->start);
    client_append_parameter(path, "end", query_text->end);
}

static enum err_code end_path(struct buf *path, struct err *err)
{
    buf_append_byte(path, 0);
    return buf_failed(path) ? err_set(err, ERR_TOO_LARGE, "the query is too long") : ERR_NONE;
}

enum err_code query_text_download(struct cli *cli, struct client *client,
                                  const struct query_text *query_text, struct input *ret_input,
                                  struct err *err)
{
    bool is_empty = false;
    const struct linked_object target = {.client = client, .ret_is_empty = &is_empty};
    struct input input = INPUT_NONE;
    buf_auto path;
    buf_init(&path, PATH_MAX_BYTES);
    buf_append_text(&path, "/api/v1/query?report=pprof");
    query_text_append(&path, query_text);
    enum err_code code = end_path(&path, err);
    if (!code)
        code = input_temporary(query_text->selector, "query.pb.gz", cli->arena, &input, err);
    if (!code)
        code = linked_object_download(&target, (const char *)path.data, "query.pb.gz",
                                      INPUT_MAX_BYTES, input.fd, &cli->terminal, err);
    if (code)
        query_text_point(cli, query_text, err);
    else if (is_empty)
        code = query_text_refuse_empty(cli, client, query_text, err);
    if (!code)
        code = input_measure(&input, err);
    if (code)
        input_close(&input);
    else
        *ret_input = input;
    return code;
}

enum err_code query_text_share(struct cli *cli, struct client *client,
                               const struct query_text *query_text,
                               const struct query_text_labels *labels,
                               struct upload_settings *settings, json_t **ret_share,
                               struct err *err)
{
    /* Continuous profiles belong to the team, so by default only the team can see the share, as on
     * the page. */
    if (!settings->visibility)
        settings->visibility = "team";
    char key[DIGEST_ID_BYTES];
    struct client_request request;
    buf_auto path;
    buf_init(&path, PATH_MAX_BYTES);
    buf_append_text(&path, "/api/v1/shares");
    query_text_append(&path, query_text);
    upload_append_query(&path, settings);
    for (size_t i = 0; labels && i < labels->count; i++)
        client_append_parameter(&path, "keep_label", labels->names[i]);
    enum err_code code = end_path(&path, err);
    if (code)
        return code;
    client_request_init(&request, "POST", (const char *)path.data);
    digest_random_id(key);
    client_request_add(&request, "Idempotency-Key", key);
    request.is_repeatable = request.has_many_retries = true;
    code = client_send_json(client, &request, ret_share, err);
    if (code)
        query_text_point(cli, query_text, err);
    return code;
}

/* ---- the position of a syntax error ---- */

/* Reads N of "… character N …", from 1; 0: none. */
static size_t find_position(const char *message)
{
    static const char word[] = "character ";
    for (const char *at = strstr(message, word); at; at = strstr(at + 1, word)) {
        uint64_t position = 0;
        size_t digits = strspn(at + strlen(word), "0123456789");
        if (digits && span_parse_u64(span_of(at + strlen(word), digits), &position))
            return (size_t)position;
    }
    return 0;
}

static const char *find_text(const struct query_text *query_text, const char *message)
{
    if (strncmp(message, "start: ", 7) == 0)
        return query_text->start;
    if (strncmp(message, "end: ", 5) == 0)
        return query_text->end;
    return strncmp(message, "query: ", 7) == 0 ? query_text->selector : NULL;
}

static bool is_utf8_continuation(char byte)
{
    return ((uint8_t)byte & 0xc0) == 0x80;
}

void query_text_point(const struct cli *cli, const struct query_text *query_text,
                      const struct err *err)
{
    const char *text = find_text(query_text, err->message);
    size_t position = find_position(err->message);
    if (!text || !position || position > strlen(text) + 1)
        return;
    size_t first = position - 1 > SHOWN_BEFORE ? position - 1 - SHOWN_BEFORE : 0,
           end = position - 1;
    while (first > 0 && is_utf8_continuation(text[first]))
        first--;
    for (size_t i = 0; text[end] && (i < SHOWN_BEHIND || is_utf8_continuation(text[end])); i++)
        end++;
    buf_auto before;
    buf_init(&before, PATH_MAX_BYTES);
    terminal_append_clean(&before, span_of(text + first, position - 1 - first));
    fputs("  ", stderr);
    terminal_print_clean(stderr, span_of(text + first, end - first));
    fprintf(stderr, "\n  %*s%s^%s\n", terminal_width(buf_span(&before)), "",
            terminal_style(&cli->terminal, stderr, STYLE_RED),
            terminal_style(&cli->terminal, stderr, STYLE_RESET));
}

/* The time of the newest matching profile, in the arena; empty: none. */
static const char *find_newest(struct client *client, const struct query_text *query_text,
                               struct arena *arena)
{
    json_auto_t *list = NULL;
    struct err ignored;
    buf_auto path;
    buf_init(&path, PATH_MAX_BYTES);
    buf_append_text(&path, "/api/v1/profiles");
    client_append_parameter(&path, "limit", "1");
    query_text_append(&path, query_text);
    buf_append_byte(&path, 0);
    if (buf_failed(&path) || client_get_json(client, (const char *)path.data, &list, &ignored))
        return "";
    const json_t *newest = json_array_get(json_object_get(list, "data"), 0);
    return arena_strdup(arena, client_text(newest, "time", ""));
}

void query_text_print_newest(struct cli *cli, struct client *client,
                             const struct query_text *query_text)
{
    if (query_text->start || query_text->end)
        return;
    const struct query_text any = {.selector = query_text->selector,
                                   .start = "1900-01-01T00:00:00Z",
                                   .end = "2150-01-01T00:00:00Z"};
    const char *time = find_newest(client, &any, cli->arena);
    if (time[0])
        terminal_warn(&cli->terminal,
                      "without --start, a query covers the last hour; the newest profile of this "
                      "selector begins at %s: use --start %s",
                      time, time);
}

/* The value of service_name="…" in a selector; NULL if it has no such label, or a regular
 * expression for it. */
static const char *service_of(const char *selector, struct arena *arena)
{
    static const char name[] = "service_name";
    const char *at = strstr(selector, name);
    while (at && at > selector && !strchr("{, ", at[-1])) /* the name is the end of another one */
        at = strstr(at + 1, name);
    if (!at)
        return NULL;
    at += strlen(name);
    at += strspn(at, " ");
    if (*at++ != '=')
        return NULL;
    at += strspn(at, " ");
    if (*at != '"' && *at != '\'' && *at != '`')
        return NULL;
    return arena_strndup(arena, at + 1, strcspn(at + 1, (const char[]){*at, '\\', '\0'}));
}

/* Returns the end of the error message: the names that are similar to wanted, or if there are none,
 * the first SHOWN_SERVICES names. If wanted itself exists, another part of the selector does not
 * match. */
static const char *list_services(const json_t *values, const char *wanted, struct arena *arena)
{
    size_t i, shown = 0;
    json_t *value;
    buf_auto near, all;
    buf_init(&near, PATH_MAX_BYTES);
    buf_init(&all, PATH_MAX_BYTES);
    json_array_foreach(values, i, value)
    {
        const char *text = json_string_value(value);
        if (!text)
            continue;
        if (strcmp(wanted, text) == 0)
            return arena_printf(arena,
                                ", though the service %.80s has profiles in it: look at the "
                                "profile type and the other labels",
                                text);
        if (suggest_distance(wanted, text) < SUGGEST_NOT_CLOSE)
            buf_printf(&near, "%s%.80s", near.size ? ", " : "", text);
        if (shown++ < SHOWN_SERVICES)
            buf_printf(&all, "%s%.80s", all.size ? ", " : "", text);
    }
    if (near.size)
        return arena_printf(arena, "; did you mean %.*s?", SPAN_PRINT(buf_span(&near)));
    if (!shown)
        return "; no service has sent profiles in it";
    return arena_printf(arena, "; services with profiles in it: %.*s%s", SPAN_PRINT(buf_span(&all)),
                        shown > SHOWN_SERVICES ? ", …" : "");
}

static const char *advise_services(struct cli *cli, struct client *client,
                                   const struct query_text *query_text)
{
    const char *wanted = service_of(query_text->selector, cli->arena);
    json_auto_t *response = NULL;
    struct err ignored;
    buf_auto path;
    buf_init(&path, PATH_MAX_BYTES);
    buf_append_text(&path, "/api/v1/label/service_name/values?limit=1000");
    client_append_parameter(&path, "start", query_text->start);
    client_append_parameter(&path, "end", query_text->end);
    buf_append_byte(&path, 0);
    if (!wanted || buf_failed(&path) ||
        client_get_json(client, (const char *)path.data, &response, &ignored))
        return "";
    return list_services(json_object_get(response, "data"), wanted, cli->arena);
}

enum err_code query_text_refuse_empty(struct cli *cli, struct client *client,
                                      const struct query_text *query_text, struct err *err)
{
    if (find_newest(client, query_text, cli->arena)[0])
        return err_set(
            err, ERR_NOT_FOUND,
            "the profiles of this window that match %.200s have no samples: the program was "
            "idle, or this counter has only one snapshot; values start with the second",
            query_text->selector);
    query_text_print_newest(cli, client, query_text);
    return err_set(err, ERR_NOT_FOUND, "no data in this window matches %.200s%s",
                   query_text->selector, advise_services(cli, client, query_text));
}
