/*
 * input: the bytes of an input argument: a file, standard input or the response of a URL.
 *
 * Pipes and downloads are copied to an unnamed temporary file, so that an upload can be repeated
 * from any offset. Threads: one.
 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdint.h>

struct arena;
struct profile;
struct terminal;

#define INPUT_MAX_BYTES (UINT64_C(4) << 30)

struct input {
    int fd;
    uint64_t bytes;       /* at least 1 */
    const char *name;     /* for messages: the argument, or "standard input" */
    const char *filename; /* for the server: without folders, and only what it takes as a name */
    void *map;            /* see input_map */
};

/*
 * argument is a path, "-" or a URL; seconds > 0 asks a pprof endpoint to measure for so long, in
 * place of what the URL asks for. User name and password of a URL are sent to its server and told
 * to nobody else: name and filename are without them. The caller closes *ret_input. Handles:
 * ERR_NOT_FOUND, ERR_INVALID (a folder, empty, no profile behind the URL), ERR_TOO_LARGE,
 * ERR_NETWORK, ERR_TIMEOUT, ERR_IO.
 */
enum err_code input_open(const char *argument, int seconds, struct terminal *terminal,
                         struct arena *arena, struct input *ret_input, struct err *err) MUST_USE;
/* An empty temporary file to be filled by the caller, who then calls input_measure. */
enum err_code input_temporary(const char *name, const char *filename, struct arena *arena,
                              struct input *ret_input, struct err *err) MUST_USE;
/* Takes note of the size. Handles: ERR_INVALID (empty), ERR_TOO_LARGE, ERR_IO. */
enum err_code input_measure(struct input *input, struct err *err) MUST_USE;
/* Bytes made here, under a name. Takes nothing: they are copied into a temporary file. */
enum err_code input_from_bytes(struct span bytes, const char *filename, struct arena *arena,
                               struct input *ret_input, struct err *err) MUST_USE;
void input_close(struct input *input); /* safe to repeat */

/* All bytes, in memory until the input is closed. Handles: ERR_IO. */
enum err_code input_map(struct input *input, struct span *ret_bytes, struct err *err) MUST_USE;

/* Decodes with the default limits; the caller destroys *ret_profile. ret_format may be NULL.
 * Handles what format_decode does. */
enum err_code input_decode(struct input *input, const char **ret_format,
                           struct profile **ret_profile, struct err *err) MUST_USE;

/* Warns of what was left out when the profile was decoded from this. */
void input_warn(const struct input *input, const struct profile *profile,
                struct terminal *terminal);

static inline void input_cleanup(struct input *input)
{
    input_close(input);
}
#define input_auto __attribute__((cleanup(input_cleanup))) struct input
#define INPUT_NONE ((struct input){.fd = -1})

#endif
