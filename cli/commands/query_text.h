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

struct question {
    const char *selector;
    const char *start; /* NULL: the server's default */
    const char *end;
};

/* What a query covers: start <= time < end, in nanoseconds since 1970. */
struct question_window {
    int64_t start_ns;
    int64_t end_ns;
};

enum { QUESTION_LABELS_MAX = 32 };

/* Labels that the samples of a new share keep; "*": all of them. */
struct question_labels {
    const char *names[QUESTION_LABELS_MAX];
    size_t count;
};

/* Is text a query, and neither file, URL nor link? It has labels in {} or a window behind an @. */
bool question_is(const char *text, struct cli *cli);

/* Handles: ERR_INVALID (a window that is none). */
enum err_code question_parse(const char *text, struct cli *cli, struct question *ret_question,
                             struct err *err) MUST_USE;

/* The window that the server will use when its clock is at now_ns: until now where the query names
 * no end, from one hour before the end where it names no start. Handles: ERR_INVALID. */
enum err_code question_window(const struct question *question, int64_t now_ns,
                              struct question_window *ret_window, struct err *err) MUST_USE;
/* A note on standard error: "before: 2026-11-26 18:34:05 to 19:34:05 UTC  SELECTOR". */
void question_print_window(struct cli *cli, const char *name, const struct question *question,
                           const struct question_window *window);

/* "?query=…&start=…&end=…", or "&query=…" where path has parameters. */
void question_append(struct buf *path, const struct question *question);

/* The merged profile, as pprof; the caller closes *ret_input. Handles what client_send does. */
enum err_code question_download(struct cli *cli, struct client *client,
                                const struct question *question, struct input *ret_input,
                                struct err *err) MUST_USE;

/* A new share of the answer, as of upload_share, for the team alone unless settings name another
 * visibility, which they do afterwards; labels may be NULL: none. Handles also ERR_INVALID
 * (there is no sample). */
enum err_code question_freeze(struct cli *cli, struct client *client,
                              const struct question *question, const struct question_labels *labels,
                              struct upload_settings *settings, json_t **ret_share,
                              struct err *err) MUST_USE;

/* Where err says at which character the question is wrong: prints the place on standard error, a
 * caret under it. To be called before words are added to err. */
void question_point(const struct cli *cli, const struct question *question, const struct err *err);

/* For a query that no data matches: sets ERR_NOT_FOUND, with the services of like names where the
 * selector names one, and prints what question_tell_newest does. Where profiles match that have no
 * samples the message says that. */
enum err_code question_refuse_empty(struct cli *cli, struct client *client,
                                    const struct question *question, struct err *err);

/* Found nothing in the default window: where profiles of the selector are, as a warning. Says
 * nothing when a window was named, or when there are none. */
void question_tell_newest(struct cli *cli, struct client *client, const struct question *question);

#endif
