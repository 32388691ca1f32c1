/*
 * build_id: the build ids of binaries, which are the keys of debug files and symbol tables.
 *
 * Clients send a build id as text: the bytes of a note in hexadecimal, or the text of Go's own
 * build id, which is converted to the hexadecimal of its bytes.
 */
#ifndef API_DEBUGINFO_BUILD_ID_H
#define API_DEBUGINFO_BUILD_ID_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct request;

enum {
    BUILD_ID_BYTES = 257,           /* a build id in hexadecimal, with NUL */
    BUILD_ID_FILE_CHARACTERS = 255, /* the longest name of a binary that is kept */
};

/* A binary as a profile names it. */
struct build_id_binary {
    struct span build_id; /* as the client sent it; empty: none */
    struct span file;
};

/* Converts a build id as clients send it to a key: hexadecimal, lower case; false if it is empty or
 * too long. */
bool build_id_normalize(struct span build_id, char ret_id[BUILD_ID_BYTES]);

/* The build id of path parameter 0. Errors: ERR_INVALID. */
enum err_code build_id_of_path(const struct request *request, char ret_id[BUILD_ID_BYTES],
                               struct err *err) MUST_USE;

#endif
