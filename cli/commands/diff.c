#include "lib/profile/report/diff.h"

#include "cli/arguments.h"
#include "cli/commands/open.h"
#include "cli/commands/query_text.h"
#include "cli/linked_object.h"
#include "cli/markdown.h"
#include "cli/report.h"
#include "cli/settings_options.h"
#include "cli/source.h"
#include "cli/token_destination.h"
#include "cli/value.h"
#include "cli/view_options.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"
#include "lib/profile/profile_builder.h"

enum { MAX_URL_BYTES = 8192, MAX_PATH_BYTES = 256 << 10 };

/* A side of the comparison: a link, a query or a profile. Once it is a share, link.a is its id. */
struct side {
    const char *text;
    bool is_link;
    bool is_query;
    bool has_picture; /* the preview picture needs no token or password */
    struct link link;
    struct query_text query_text;
    struct query_text_window window;
    struct input input;      /* of a profile */
    struct profile *profile; /* of a link or query only the sample types; NULL: unknown */
    const char *format;
};

struct diff {
    struct cli *cli;
    struct view_options_input view;
    struct upload_settings settings;
    struct arguments sides;
    bool is_local;
    bool is_normalised;
    bool is_opened;
    bool is_markdown;
    const char *password; /* for sides that are protected shares */
};

static const char *const visibilities[] = {"public", "unlisted", "team", NULL};

static const struct option_row rows[] = {
    {"local", 0, NULL, "Print a table and upload nothing", OPTION_FLAG(struct diff, is_local)},
    {"normalized", 0, NULL, "Scale B to the total of A, to compare proportions",
     OPTION_FLAG(struct diff, is_normalised)},
    {"normalised", .is_alias = true},
    {"expires", 0, "TIME", "When the uploaded profiles expire: 12h, 30d, 8w or never",
     OPTION_TEXT(struct diff, settings.expires)},
    {"visibility", 0, "VISIBILITY",
     "public, unlisted or team (team for queries, unlisted for files)",
     OPTION_WORD(struct diff, settings.visibility, visibilities),
     .error = "--visibility is {words}, not {value}"},
    {"markdown", 0, NULL, "Print Markdown to paste: link, picture and the largest changes",
     OPTION_FLAG(struct diff, is_markdown)},
    {"open", 0, NULL, "Open the link in a browser", OPTION_FLAG(struct diff, is_opened)},
    {0},
};

static enum err_code check_arguments(void *values, struct err *err)
{
    const struct diff *diff = values;
    if (diff->sides.texts.count != 2)
        return err_set(err, ERR_INVALID, "a diff has two sides: before and after");
    if (!diff->is_local && (diff->view.rule_count || diff->view.is_json))
        return err_set(err, ERR_INVALID, "filters and --json need --local");
    if (diff->is_local && diff->is_markdown)
        return err_set(err, ERR_INVALID,
                       "--markdown prints a link and cannot be combined with --local");
    return ERR_NONE;
}

static const struct option_part parts[] = {VIEW_OPTIONS_PART(offsetof(struct diff, view)),
                                           ARGUMENTS_PART(offsetof(struct diff, sides)),
                                           {0}};
static const struct option_table options = {
    .rows = rows,
    .check = check_arguments,
    .arguments = "A B",
    .text =
        "Compare B with A and print a link to the comparison. Each side is a file, - (standard "
        "input), a URL, a link, an id or a query; sides that are not on the server are "
        "uploaded.\v"
        "A query is a selector and a window: 'cpu:nanoseconds{pod=\"a\"}@now-2h..now-1h'; @TIME "
        "is the hour that begins at TIME. The default window is the last hour. The result of a "
        "query is stored as a share.",
    .parts = parts,
};

/* Sets the kind of each side, and the query and window of queries. Reads the clock once for both
 * windows, so that equal relative times are equal. */
static enum err_code classify_sides(struct diff *diff, struct side sides[2], struct err *err)
{
    const int64_t now_ns = clock_wall_ns();
    for (int i = 0; i < 2; i++) {
        sides[i].is_link = source_is_link(sides[i].text, diff->cli, &sides[i].link);
        sides[i].is_query = query_text_is(sides[i].text, diff->cli);
        if (!sides[i].is_query)
            continue;
        enum err_code code = query_text_parse(sides[i].text, diff->cli, &sides[i].query_text, err);
        if (code)
            return code;
        code = query_text_window(&sides[i].query_text, now_ns, &sides[i].window, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

static bool is_same(const struct side *a, const struct side *b)
{
    if (a->is_query && b->is_query)
        return strcmp(a->query_text.selector, b->query_text.selector) == 0 &&
               a->window.start_ns == b->window.start_ns && a->window.end_ns == b->window.end_ns;
    if (a->is_link && b->is_link && !a->link.is_diff)
        return strcmp(a->link.a, b->link.a) == 0;
    return strcmp(a->text, b->text) == 0;
}

static const char *length_text(const struct query_text_window *window, char text[VALUE_TEXT_BYTES])
{
    const double ns = (double)window->end_ns - (double)window->start_ns;
    return value_format(ns, SPAN_LITERAL("nanoseconds"), text);
}

/* Warns if the windows differ in length, because a longer window has larger totals. Compares the
 * printed lengths, so that differences of nanoseconds are ignored. */
static void note_lengths(struct diff *diff, const struct side sides[2])
{
    char before[VALUE_TEXT_BYTES], after[VALUE_TEXT_BYTES];
    if (!sides[0].is_query || !sides[1].is_query)
        return;
    length_text(&sides[0].window, before);
    length_text(&sides[1].window, after);
    if (strcmp(before, after) == 0)
        return;
    const char *lengths =
        arena_printf(diff->cli->arena, "the windows are not equally long, %s before and %s after",
                     before, after);
    if (diff->is_normalised)
        terminal_note(&diff->cli->terminal, "%s: after is scaled to the total of before", lengths);
    else
        terminal_warn(&diff->cli->terminal,
                      "%s: values are totals of each window (means for gauges), not rates: use "
                      "windows of equal length, or compare proportions with --normalized",
                      lengths);
}

static void print_windows(struct diff *diff, const struct side sides[2])
{
    for (int i = 0; i < 2; i++) {
        if (sides[i].is_query)
            query_text_print_window(diff->cli, i ? "after" : "before", &sides[i].query_text,
                                    &sides[i].window);
    }
    note_lengths(diff, sides);
}

/* Determines the kind of each side without a request, and refuses equal sides. */
static enum err_code name_sides(struct diff *diff, struct side sides[2], struct err *err)
{
    enum err_code code = classify_sides(diff, sides, err);
    if (code)
        return code;
    print_windows(diff, sides);
    if (!is_same(&sides[0], &sides[1]))
        return ERR_NONE;
    if (sides[0].is_query)
        return cli_usage(diff->cli, err,
                         "both sides are the same query of the same window: give two windows, as "
                         "in 'QUERY@now-2h..now-1h' 'QUERY@now-1h..now'");
    return cli_usage(diff->cli, err, "both sides are %.200s: give two different profiles",
                     sides[0].text);
}

static enum err_code open_side(struct diff *diff, const struct side *side, struct input *ret_input,
                               struct err *err)
{
    if (!side->is_query)
        return source_open(diff->cli, side->text, 0, diff->password, ret_input, err);
    client_auto client = NULL;
    enum err_code code = cli_connect(diff->cli, NULL, &client, err);
    if (code)
        return code;
    code = query_text_download(diff->cli, client, &side->query_text, ret_input, err);
    return code ? err_add(err, "%.200s", side->text) : ERR_NONE;
}

static enum err_code compare(struct diff *diff, struct profile *profiles[2], struct report *report,
                             struct err *err)
{
    struct cli *cli = diff->cli;
    struct view_options view_options;
    const struct view *view;
    const char *const *texts = diff->sides.texts.texts;
    struct side sides[2] = {{.text = texts[0]}, {.text = texts[1]}};
    enum err_code code = view_options_make(&diff->view, &view_options, err);
    if (code)
        return code;
    code = name_sides(diff, sides, err);
    if (code)
        return code;
    for (int i = 0; i < 2; i++) {
        input_auto input = INPUT_NONE;
        code = open_side(diff, &sides[i], &input, err);
        if (code)
            return code;
        code = input_decode(&input, NULL, &profiles[i], err);
        if (code)
            return code;
        input_warn(&input, profiles[i], &cli->terminal);
    }
    code = diff_view_create(cli->arena, profiles[0], profiles[1],
                            diff->is_normalised ? DIFF_NORMALISED : DIFF_ABSOLUTE, &view_options,
                            &view, err);
    if (code)
        return code;
    report_from_view(view, diff->view.limit, cli->arena, report);
    return ERR_NONE;
}

static enum err_code diff_local(struct diff *diff, struct err *err)
{
    struct profile *profiles[2] = {NULL, NULL};
    struct report report;
    enum err_code code = compare(diff, profiles, &report, err);
    if (!code && diff->view.is_json)
        report_print_json(&report);
    else if (!code)
        report_print_table(diff->cli, &report);
    profile_destroy(profiles[0]);
    profile_destroy(profiles[1]);
    return code ? code : cli_flush(err);
}

/* Makes a profile with only the share's sample types, which is sufficient to check a comparison. */
static enum err_code types_of_share(const json_t *share, struct profile **ret_types,
                                    struct err *err)
{
    size_t i;
    json_t *type;
    profile_builder_auto builder = profile_builder_create(NULL);
    json_array_foreach(json_object_get(share, "sample_types"), i, type)
    {
        profile_builder_add_value_type(builder, span_text(client_text(type, "type", "")),
                                       span_text(client_text(type, "unit", "")));
    }
    return profile_builder_take(builder, ret_types, err);
}

/* Checks that the share exists and reads its sample types. The types of a share that requires a
 * password remain unknown. */
static enum err_code check_link(const struct diff *diff, struct client *client, struct side *side,
                                struct err *err)
{
    struct cli *cli = diff->cli;
    json_auto_t *share = NULL;
    struct client_request request;
    client_request_init(&request, "GET",
                        arena_printf(cli->arena, "/api/v1/shares/%s", side->link.a));
    if (diff->password)
        client_request_add(&request, "X-Perfolio-Password", diff->password);
    enum err_code code = client_send_json(client, &request, &share, err);
    if (code == ERR_UNAUTHENTICATED && !diff->password)
        return ERR_NONE;
    if (!code)
        code = types_of_share(share, &side->profile, err);
    const char *visibility = code ? "" : client_text(share, "visibility", "");
    side->has_picture = strcmp(visibility, "public") == 0 || strcmp(visibility, "unlisted") == 0;
    return code ? err_add(err, "%s", side->text) : ERR_NONE;
}

/* Checks that the query is valid and matches data of one type, and reads that type. */
static enum err_code check_query(const struct diff *diff, struct client *client, struct side *side,
                                 struct err *err)
{
    json_auto_t *top = NULL;
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    buf_append_text(&path, "/api/v1/query?report=top&limit=1");
    query_text_append(&path, &side->query_text);
    buf_append_byte(&path, 0);
    if (buf_failed(&path))
        return err_set(err, ERR_TOO_LARGE, "the query is too long");
    enum err_code code = client_get_json(client, (const char *)path.data, &top, err);
    if (code) {
        query_text_point(diff->cli, &side->query_text, err);
        return err_add(err, "%.200s", side->text);
    }
    if (json_array_size(json_object_get(top, "functions")) == 0)
        return query_text_refuse_empty(diff->cli, client, &side->query_text, err);
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, span_text(client_text(top, "sample_type", "")),
                                   span_text(client_text(top, "unit", "")));
    return profile_builder_take(builder, &side->profile, err);
}

static enum err_code read_side(struct cli *cli, struct side *side, struct err *err)
{
    enum err_code code = input_open(side->text, 0, &cli->terminal, cli->arena, &side->input, err);
    if (code)
        return code;
    code = input_decode(&side->input, &side->format, &side->profile, err);
    if (code)
        return code;
    input_warn(&side->input, side->profile, &cli->terminal);
    return ERR_NONE;
}

/* Finds all problems before anything is uploaded. If a side is a link or a query, only its types
 * are known. */
static enum err_code check_sides(const struct diff *diff, struct client *client,
                                 struct side sides[2], struct err *err)
{
    enum err_code code = ERR_NONE;
    uint32_t types[2];
    for (int i = 0; i < 2; i++) {
        if (sides[i].is_link)
            code = check_link(diff, client, &sides[i], err);
        else if (sides[i].is_query)
            code = check_query(diff, client, &sides[i], err);
        if (code)
            return code;
    }
    for (int i = 0; i < 2; i++) {
        if (!sides[i].is_link && !sides[i].is_query)
            code = read_side(diff->cli, &sides[i], err);
        if (code)
            return code;
    }
    if (!sides[0].profile || !sides[1].profile)
        return ERR_NONE;
    code = diff_find_types(sides[0].profile, sides[1].profile,
                           span_text(diff->view.sample_type ? diff->view.sample_type : ""),
                           &types[0], &types[1], err);
    if (code)
        return code;
    share_print_pair(diff->cli, (const struct profile *[]){sides[0].profile, sides[1].profile},
                     types);
    return ERR_NONE;
}

static enum err_code upload_side(struct diff *diff, struct client *client, struct side *side,
                                 struct err *err)
{
    struct cli *cli = diff->cli;
    json_auto_t *share = NULL;
    struct upload_settings settings = diff->settings;
    enum err_code code;
    if (side->is_query) {
        terminal_note(&cli->terminal, "%.200s:", side->text);
        code = query_text_share(cli, client, &side->query_text, NULL, &settings, &share, err);
    } else {
        share_print_profile(cli, &side->input, side->format, side->profile);
        settings.filename = side->input.filename;
        code = upload_share(client, &cli->terminal, &side->input, &settings, &share, err);
    }
    if (code)
        return err_add(err, "%s", side->text);
    terminal_note(&cli->terminal, "  link     %s", client_text(share, "url", ""));
    share_print_details(cli, share, &settings);
    side->link.a = arena_strdup(cli->arena, client_text(share, "id", ""));
    side->has_picture = strstr(client_text(share, "markdown", ""), "[![") != NULL;
    return ERR_NONE;
}

/* Chooses the server: that of the links, which must be the same, else the account's. */
static enum err_code choose_base(struct diff *diff, const struct side sides[2],
                                 const char **ret_base, struct err *err)
{
    const char *base = NULL;
    for (int i = 0; i < 2; i++) {
        const char *side_base = sides[i].is_link ? sides[i].link.base : NULL;
        if (!side_base)
            continue;
        if (base && !token_destination_is_same(base, side_base))
            return cli_usage(diff->cli, err, "the two links are on different servers: try --local");
        base = side_base;
    }
    *ret_base = base;
    return ERR_NONE;
}

/* Appends the view state in the form of the page (web/src/view_state.ts). */
static void append_view(struct buf *url, const struct diff *diff)
{
    if (!diff->is_normalised && !diff->view.sample_type && !diff->view.group_by)
        return;
    buf_append_text(url, "?");
    if (diff->view.sample_type) {
        buf_append_text(url, "st=");
        buf_append_url(url, span_text(diff->view.sample_type));
        buf_append_text(url, "&");
    }
    if (diff->view.group_by) {
        buf_append_text(url, "g=");
        buf_append_url(url, span_text(diff->view.group_by));
        buf_append_text(url, "&");
    }
    buf_append_text(url, diff->is_normalised ? "norm=1&sv=1" : "sv=1");
}

static bool read_changes(const struct diff *diff, struct client *client, const struct side sides[2],
                         json_t **ret_json, struct report *ret_report)
{
    struct err ignored;
    struct client_request request;
    buf_auto path;
    buf_init(&path, MAX_URL_BYTES);
    buf_printf(&path, "/api/v1/diff/top?limit=%d", MARKDOWN_ROWS);
    client_append_parameter(&path, "a", sides[0].link.a);
    client_append_parameter(&path, "b", sides[1].link.a);
    client_append_parameter(&path, "mode", diff->is_normalised ? "normalised" : NULL);
    client_append_parameter(&path, "sample_type", diff->view.sample_type);
    client_append_parameter(&path, "group_by", diff->view.group_by);
    buf_append_byte(&path, 0);
    if (buf_failed(&path))
        return false;
    client_request_init(&request, "GET", (const char *)path.data);
    if (diff->password)
        client_request_add(&request, "X-Perfolio-Password", diff->password);
    return !client_send_json(client, &request, ret_json, &ignored) && *ret_json &&
           !report_from_json(*ret_json, diff->cli->arena, ret_report, &ignored);
}

/* Prints only the link if the server has no table of changes, for example if values are too
 * large. */
static void print_markdown(const struct diff *diff, struct client *client,
                           const struct side sides[2], const char *url)
{
    json_auto_t *json = NULL;
    struct report report;
    if (read_changes(diff, client, sides, &json, &report))
        markdown_print_diff(&report, url, sides[0].has_picture && sides[1].has_picture);
    else
        printf("[Two profiles compared](%s)\n", url);
}

static enum err_code print_link(struct diff *diff, struct client *client,
                                const struct side sides[2], struct err *err)
{
    buf_auto url;
    buf_init(&url, MAX_URL_BYTES);
    buf_printf(&url, "%s/d/%s..%s", client_base(client), sides[0].link.a, sides[1].link.a);
    append_view(&url, diff);
    buf_append_byte(&url, 0);
    if (buf_failed(&url))
        return err_set(err, ERR_TOO_LARGE, "the link would be too long");
    if (diff->is_markdown)
        print_markdown(diff, client, sides, (const char *)url.data);
    else
        printf("%s\n", (const char *)url.data);
    enum err_code code = cli_flush(err);
    if (code || !diff->is_opened)
        return code;
    return open_url((const char *)url.data, err);
}

static enum err_code link_sides(struct diff *diff, struct side sides[2], struct err *err)
{
    struct cli *cli = diff->cli;
    const char *base = NULL;
    client_auto client = NULL;
    enum err_code code = name_sides(diff, sides, err);
    if (code)
        return code;
    for (int i = 0; i < 2; i++) {
        if (sides[i].is_link && sides[i].link.is_diff)
            return cli_usage(cli, err, "%s is a diff already", sides[i].text);
    }
    code = choose_base(diff, sides, &base, err);
    if (code)
        return code;
    code = cli_connect(cli, base, &client, err);
    if (code)
        return code;
    code = check_sides(diff, client, sides, err);
    if (code)
        return code;
    for (int i = 0; i < 2; i++) {
        if (!sides[i].is_link)
            code = upload_side(diff, client, &sides[i], err);
        if (code)
            return code;
    }
    return print_link(diff, client, sides, err);
}

static enum err_code diff_link(struct diff *diff, struct err *err)
{
    const char *const *texts = diff->sides.texts.texts;
    struct side sides[2] = {{.text = texts[0], .input = INPUT_NONE},
                            {.text = texts[1], .input = INPUT_NONE}};
    enum err_code code = link_sides(diff, sides, err);
    for (int i = 0; i < 2; i++) {
        profile_destroy(sides[i].profile);
        input_close(&sides[i].input);
    }
    return code;
}

static enum err_code run_diff(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct diff diff = {.cli = cli,
                        .view = {.cli = cli, .limit = VIEW_OPTIONS_DEFAULT_LIMIT},
                        .sides = {.cli = cli, .wanted = "give two profiles: before and after"}};
    cli_parse(&diff_command, argc, argv, &diff);
    enum err_code code =
        arguments_check_stdin(cli, &diff.sides.texts, diff.view.password_file, err);
    if (code)
        return code;
    if (diff.view.password_file)
        code = cli_read_secret(cli, diff.view.password_file, &diff.password, err);
    if (code)
        return code;
    return diff.is_local ? diff_local(&diff, err) : diff_link(&diff, err);
}

const struct command diff_command = {
    .name = "diff",
    .summary = "compare two profiles, as a link or as a table",
    .options = &options,
    .arguments = ARGUMENTS_BOTH,
    .run = run_diff,
};
