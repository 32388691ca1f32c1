/*
 * share_print: prints a new share: the result on standard output, everything else on standard
 * error.
 */
#ifndef CLI_SHARE_PRINT_H
#define CLI_SHARE_PRINT_H

#include "lib/base/err_code.h"

#include <jansson.h>
#include <stdint.h>

struct cli;
struct client;
struct input;
struct profile;
struct upload_settings;

enum share_output { SHARE_OUTPUT_URL, SHARE_OUTPUT_JSON, SHARE_OUTPUT_MARKDOWN };

/* Prints the URL, the JSON on one line, or the Markdown, and flushes standard output. For the
 * Markdown it requests the top functions from the server. Errors: those of cli_flush. */
enum err_code share_print_result(struct cli *cli, struct client *client, enum share_output output,
                                 const json_t *share, const struct upload_settings *settings,
                                 struct err *err) MUST_USE;

/* Call it before the upload: prints "cpu.pb.gz: pprof, 1.20 MiB, 12,345 samples (samples, cpu)".
 * Warns of sample types whose values are too large for a total and for reports. */
void share_print_profile(struct cli *cli, const struct input *input, const char *format,
                         const struct profile *profile);

/*
 * Call it before the uploads of a comparison. types: index of the compared type in each
 * profile. Warns if its values can be added for each side, but not for both sides together, as
 * reports of the comparison do.
 */
void share_print_pair(struct cli *cli, const struct profile *const profiles[2],
                      const uint32_t types[2]);

/* Call it after the upload: prints the expiry, who can see the share and how to delete it. Stores
 * the delete token, and warns if that fails. */
void share_print_details(struct cli *cli, const json_t *share,
                         const struct upload_settings *settings);

#endif
