/*
 * query_text: a query on the command line: a selector and an optional window.
 *
 *   cpu:nanoseconds{service_name="api"}              the last hour
 *   cpu:nanoseconds{service_name="api"}@now-2h..now  from start (inclusive) to end (exclusive)
 *   cpu:nanoseconds{service_name="api"}@now-1d       the hour that begins at this time
 *
 * lib/input/time_parse.h defines the times. Texts live in the arena of the process.
 */
#ifndef CLI_COMMANDS_QUERY_TEXT_H
#define CLI_COMMANDS_QUERY_TEXT_H

#include "cli/input.h"
#include "cli/upload.h"

#include <stdbool.h>
#include <stdint.h>

struct cli;
struct client;

struct query_text {
    const char *selector;
    const char *start; /* NULL: the server's default */
    const char *end;
};

/* The window of a query: start <= time < end, in nanoseconds since 1970. */
struct query_text_window {
    int64_t start_ns;
    int64_t end_ns;
};

enum { QUERY_TEXT_LABELS_MAX = 32 };

/* Labels that the samples of a new share keep; "*": all of them. */
struct query_text_labels {
    const char *names[QUERY_TEXT_LABELS_MAX];
    size_t count;
};

/* Returns true if text is a query, not a file, URL or link: it has labels in {} or a window after
 * @. */
bool query_text_is(const char *text, struct cli *cli);

/* Splits text into selector and window. Errors: ERR_INVALID (the window is invalid). */
enum err_code query_text_parse(const char *text, struct cli *cli, struct query_text *ret_query,
                               struct err *err) MUST_USE;

/* The window that the server uses at time now_ns: the default end is now_ns, the default start one
 * hour before the end. Errors: ERR_INVALID. */
enum err_code query_text_window(const struct query_text *query_text, int64_t now_ns,
                                struct query_text_window *ret_window, struct err *err) MUST_USE;
/* Prints a note on standard error: "before: 2026-11-26 18:34:05 to 19:34:05 UTC  SELECTOR", where
 * name is "before". */
void query_text_print_window(struct cli *cli, const char *name, const struct query_text *query_text,
                             const struct query_text_window *window);

/* Appends "?query=…&start=…&end=…", or "&query=…" if path has parameters. Times that are NULL are
 * left out. */
void query_text_append(struct buf *path, const struct query_text *query_text);

/* Downloads the merged profile of the query as pprof; the caller closes *ret_input. Errors: those
 * of linked_object_download, ERR_NOT_FOUND (no data, see query_text_refuse_empty). */
enum err_code query_text_download(struct cli *cli, struct client *client,
                                  const struct query_text *query_text, struct input *ret_input,
                                  struct err *err) MUST_USE;

/* Stores the result as a new share, like upload_share. If settings has no visibility, it is set to
 * team. labels may be NULL: none are kept. Errors also: ERR_INVALID (no sample). */
enum err_code query_text_share(struct cli *cli, struct client *client,
                               const struct query_text *query_text,
                               const struct query_text_labels *labels,
                               struct upload_settings *settings, json_t **ret_share,
                               struct err *err) MUST_USE;

/* If err names the character position of a syntax error, prints the query to standard error with a
 * caret at that position. Call it before err_add changes the message. */
void query_text_point(const struct cli *cli, const struct query_text *query_text,
                      const struct err *err);

/* For a query that matches no data: sets ERR_NOT_FOUND, lists services with similar names if the
 * selector names a service, and calls query_text_print_newest. The message differs if profiles
 * match but contain no samples. */
enum err_code query_text_refuse_empty(struct cli *cli, struct client *client,
                                      const struct query_text *query_text, struct err *err);

/* After an empty result of the default window: warns with the time of the newest matching profiles.
 * Prints nothing if the query has a window or no profile matches. */
void query_text_print_newest(struct cli *cli, struct client *client,
                             const struct query_text *query_text);

#endif
