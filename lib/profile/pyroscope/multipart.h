/*
 * multipart: the parts of a multipart/form-data body (RFC 7578, RFC 2046), read strictly and
 * without copying.
 *
 * Lines end in CR LF, every part has a Content-Disposition "form-data" with a name, and the body
 * ends with its closing boundary; what stands before the first and behind the last one is passed
 * over. A Content-Transfer-Encoding other than 7bit, 8bit and binary is refused: nobody sends one.
 * Names are taken as they stand between the quotes, but for "\" before a character. Threads: any.
 */
#ifndef LIB_PROFILE_PYROSCOPE_MULTIPART_H
#define LIB_PROFILE_PYROSCOPE_MULTIPART_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum {
    MULTIPART_BOUNDARY_MAX = 70, /* RFC 2046, 5.1.1 */
    MULTIPART_PARTS_MAX = 64,
    MULTIPART_HEADER_MAX = 8192, /* bytes of all header lines of a part */
    MULTIPART_NAME_MAX = 128
};

struct multipart {
    struct span rest;
    char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CR LF, two dashes, the boundary */
    size_t delimiter_size;
    uint32_t part_count;
    bool is_started;
};

struct multipart_part {
    char name[MULTIPART_NAME_MAX + 1];
    size_t name_size;
    struct span content_type; /* borrowed from the body; empty where there is none */
    struct span body;         /* borrowed */
};

/* Is it "multipart/form-data", whatever its parameters? */
bool multipart_is_form(struct span content_type);

/* body is borrowed. Handles: ERR_INVALID (no form, or no boundary that may be one). */
enum err_code multipart_init(struct multipart *multipart, struct span content_type,
                             struct span body, struct err *err) MUST_USE;

/*
 * The next part; *ret_is_end instead when there is none. Handles: ERR_INVALID (malformed; the
 * message counts parts from 1), ERR_UNSUPPORTED (a transfer encoding), ERR_TOO_LARGE (limits
 * above).
 */
enum err_code multipart_next(struct multipart *multipart, struct multipart_part *ret_part,
                             bool *ret_is_end, struct err *err) MUST_USE;

#endif
