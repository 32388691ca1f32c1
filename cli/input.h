/*
 * input: the bytes of an input argument: a file, standard input or the response of a URL.
 *
 * Pipes and downloads are copied to an unnamed temporary file, so that an upload can be repeated
 * from any offset. Threads: one.
 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;
struct profile;
struct terminal;

#define INPUT_MAX_BYTES (UINT64_C(4) << 30)

struct input {
    int fd;               /* -1: closed */
    uint64_t bytes;       /* at least 1 */
    const char *name;     /* for messages: the argument, or "standard input" */
    const char *filename; /* for the server: without folders, only characters that it accepts */
    void *map;            /* see input_map */
};

/*
 * Opens an input. argument is a path, "-" (standard input) or a URL. seconds > 0 replaces the
 * parameter "seconds" of a URL, the time for which a pprof endpoint measures. User name and
 * password of a URL are sent to its server only; name and filename do not contain them. The caller
 * closes *ret_input. Errors: ERR_NOT_FOUND (also for status 404), ERR_FORBIDDEN (status 401 or
 * 403), ERR_NETWORK (any other status), ERR_UNSUPPORTED (a URL that is neither http nor https),
 * ERR_INVALID (a folder, or empty), ERR_TOO_LARGE (more than INPUT_MAX_BYTES), ERR_IO, and those of
 * http_client_create and http_client_send.
 */
enum err_code input_open(const char *argument, int seconds, struct terminal *terminal,
                         struct arena *arena, struct input *ret_input, struct err *err) MUST_USE;
/* Creates an empty temporary file; the caller fills it and then calls input_measure. */
enum err_code input_temporary(const char *name, const char *filename, struct arena *arena,
                              struct input *ret_input, struct err *err) MUST_USE;
/* Sets the size. Errors: ERR_INVALID (empty), ERR_TOO_LARGE, ERR_IO. */
enum err_code input_measure(struct input *input, struct err *err) MUST_USE;
/* Makes an input of bytes, which are copied to a temporary file. */
enum err_code input_from_bytes(struct span bytes, const char *filename, struct arena *arena,
                               struct input *ret_input, struct err *err) MUST_USE;
void input_close(struct input *input); /* safe to repeat */

/* Maps all bytes; they are valid until the input is closed. A second call returns the same mapping.
 * Errors: ERR_IO. */
enum err_code input_map(struct input *input, struct span *ret_bytes, struct err *err) MUST_USE;

/* Decodes with the default limits; the caller destroys *ret_profile. ret_format may be NULL.
 * Errors: those of format_decode. */
enum err_code input_decode(struct input *input, const char **ret_format,
                           struct profile **ret_profile, struct err *err) MUST_USE;

/* Prints the warning of a profile that was decoded from this input. */
void input_warn(const struct input *input, const struct profile *profile,
                struct terminal *terminal);

static inline void input_cleanup(struct input *input)
{
    input_close(input);
}
#define input_auto __attribute__((cleanup(input_cleanup))) struct input
#define INPUT_NONE ((struct input){.fd = -1})

#endif
