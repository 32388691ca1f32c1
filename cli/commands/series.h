/*
 * series: adds an input to the continuous profiles of the server instead of creating a share.
 *
 * A profile of any format is sent to /api/v1/profiles with the labels of its series. A saved
 * OpenTelemetry batch (ExportProfilesServiceRequest in protobuf or JSON, plain, gzip or zstd)
 * contains its own labels and is sent to /v1development/profiles. Both requests are repeatable: the
 * server stores a profile with a time once; a request with a profile without a time gets a random
 * Perfolio-Batch-Id, by which the server recognizes its repetition. Threads: one.
 */
#ifndef CLI_COMMANDS_SERIES_H
#define CLI_COMMANDS_SERIES_H

#include "lib/base/err_code.h"

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
    bool is_unchecked; /* sent as a profile without decoding it; no effect with
                          SERIES_FORMAT_OTLP */
    bool is_json;      /* print JSON */
};

/* Sends input, prints the number of values that were added, and warns about data that the server
 * ignored. Errors: those of client_send, ERR_INVALID (neither a profile nor a batch),
 * ERR_TOO_LARGE, ERR_IO. */
enum err_code series_push(struct cli *cli, struct client *client, struct input *input,
                          const struct series_settings *settings, struct err *err) MUST_USE;

#endif
