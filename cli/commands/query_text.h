/*
 * question: a query of the command line: what a selector finds in a window, asked of the server.
 *
 *   cpu:nanoseconds{service_name="api"}              the last hour
 *   cpu:nanoseconds{service_name="api"}@now-2h..now  from one moment until before another
 *   cpu:nanoseconds{service_name="api"}@now-1d       the hour that begins then
 *
 * Moments are those of lib/base/time_parse.h. Texts live in the process's arena.
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

/* What a query covers: start <= time < end, in nanoseconds since 1970. */
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

/* Is text a query, and neither file, URL nor link? It has labels in {} or a window behind an @. */
bool query_text_is(const char *text, struct cli *cli);

/* Handles: ERR_INVALID (a window that is none). */
enum err_code query_text_parse(const char *text, struct cli *cli, struct query_text *ret_question,
                               struct err *err) MUST_USE;

/* The window that the server will use when its clock is at now_ns: until now where the query names
 * no end, from one hour before the end where it names no start. Handles: ERR_INVALID. */
enum err_code query_text_window(const struct query_text *question, int64_t now_ns,
                                struct query_text_window *ret_window, struct err *err) MUST_USE;
/* A note on standard error: "before: 2026-11-26 18:34:05 to 19:34:05 UTC  SELECTOR". */
void query_text_print_window(struct cli *cli, const char *name, const struct query_text *question,
                             const struct query_text_window *window);

/* "?query=…&start=…&end=…", or "&query=…" where path has parameters. */
void query_text_append(struct buf *path, const struct query_text *question);

/* The merged profile, as pprof; the caller closes *ret_input. Handles what client_send does. */
enum err_code query_text_download(struct cli *cli, struct client *client,
                                  const struct query_text *question, struct input *ret_input,
                                  struct err *err) MUST_USE;

/* A new share of the answer, as of upload_share, for the team alone unless settings name another
 * visibility, which they do afterwards; labels may be NULL: none. Handles also ERR_INVALID
 * (there is no sample). */
enum err_code query_text_freeze(struct cli *cli, struct client *client,
                                const struct query_text *question,
                                const struct query_text_labels *labels,
                                struct upload_settings *settings, json_t **ret_share,
                                struct err *err) MUST_USE;

/* Where err says at which character the question is wrong: prints the place on standard error, a
 * caret under it. To be called before words are added to err. */
void query_text_point(const struct cli *cli, const struct query_text *question,
                      const struct err *err);

/* For a query that no data matches: sets ERR_NOT_FOUND, with the services of like names where the
 * selector names one, and prints what query_text_tell_newest does. Where profiles match that have
 * no samples the message says that. */
enum err_code query_text_refuse_empty(struct cli *cli, struct client *client,
                                      const struct query_text *question, struct err *err);

/* Found nothing in the default window: where profiles of the selector are, as a warning. Says
 * nothing when a window was named, or when there are none. */
void query_text_tell_newest(struct cli *cli, struct client *client,
                            const struct query_text *question);

#endif
