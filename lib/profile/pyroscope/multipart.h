/*
 * multipart: parses a multipart/form-data body (RFC 7578, RFC 2046) strictly and without copying.
 *
 * Lines end in CR LF, every part has a Content-Disposition "form-data" with a name, and the body
 * ends with its closing boundary; text before the first and after the last boundary is skipped. A
 * Content-Transfer-Encoding other than 7bit, 8bit and binary is refused; no client sends one. A
 * part's name is a plain word or quoted text, in which "\" escapes a character. Threads: any; an
 * object belongs to one thread.
 */
#ifndef LIB_PROFILE_PYROSCOPE_MULTIPART_H
#define LIB_PROFILE_PYROSCOPE_MULTIPART_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

enum {
    MULTIPART_BOUNDARY_MAX = 70, /* RFC 2046, 5.1.1 */
    MULTIPART_PARTS_MAX = 64,
    MULTIPART_HEADER_MAX = 8192, /* bytes of all header lines of a part */
    MULTIPART_NAME_MAX = 128
};

/* The state of parsing; members are private. Nothing has to be freed. */
struct multipart {
    struct span rest;                           /* not parsed yet */
    char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CR LF, two dashes, the boundary */
    size_t delimiter_size;
    uint32_t part_count;
    bool is_started;
};

struct multipart_part {
    char name[MULTIPART_NAME_MAX + 1];
    size_t name_size;
    struct span content_type; /* borrowed from the body; empty if absent */
    struct span body;         /* borrowed */
};

/* Whether content_type is "multipart/form-data", ignoring case and parameters. */
bool multipart_is_form(struct span content_type);

/* Starts parsing; body is borrowed. Errors: ERR_INVALID (not a form, or no valid boundary). */
enum err_code multipart_init(struct multipart *multipart, struct span content_type,
                             struct span body, struct err *err) MUST_USE;

/*
 * Sets *ret_is_end, and *ret_part to the next part unless that is true. Do not call it again after
 * the end or an error. Errors: ERR_INVALID (malformed; the message counts parts from 1),
 * ERR_UNSUPPORTED (a transfer encoding), ERR_TOO_LARGE (limits above).
 */
enum err_code multipart_next(struct multipart *multipart, struct multipart_part *ret_part,
                             bool *ret_is_end, struct err *err) MUST_USE;

#endif
