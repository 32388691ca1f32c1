/*
 * series: an input is added to the server's continuous profiles, in place of becoming a share.
 *
 * A profile of any format goes to /api/v1/profiles with the labels of its series, a saved batch of
 * OpenTelemetry (an ExportProfilesServiceRequest in protobuf or JSON, plain, gzip or zstd), whose
 * labels are its own, to /v1development/profiles. Either may be repeated: what has a time counts
 * once for the server, and what has none gets an id. Threads: one.
 */
#ifndef CLI_COMMANDS_SERIES_H
#define CLI_COMMANDS_SERIES_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct cli;
struct client;
struct input;

enum series_format { SERIES_FORMAT_BY_CONTENT, SERIES_FORMAT_PROFILE, SERIES_FORMAT_OTLP };

struct series_settings {
    const char *const *labels; /* "name=value" */
    size_t label_count;
    enum series_format format;
    bool is_unchecked; /* sent without being read: a profile unless format says otherwise */
    bool is_json;      /* what is printed */
};

/* Prints what was added, and warns of what the server left out. Handles what client_send does,
 * ERR_INVALID (neither a profile nor a batch), ERR_TOO_LARGE, ERR_IO. */
enum err_code series_push(struct cli *cli, struct client *client, struct input *input,
                          const struct series_settings *settings, struct err *err) MUST_USE;

#endif
