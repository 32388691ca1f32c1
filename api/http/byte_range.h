/*
 * byte_range: parts of a file, requested with Range (RFC 9110, section 14).
 *
 * One range of bytes is supported, if the file contains at least its first byte: "bytes=0-99",
 * "bytes=100-", "bytes=-100". Anything else in a Range field (other units, several ranges,
 * malformed ones) is ignored, which the RFC allows, and so is a Range whose If-Range names another
 * version.
 */
#ifndef API_HTTP_BYTE_RANGE_H
#define API_HTTP_BYTE_RANGE_H

#include "lib/base/buf.h"

#include <stdint.h>

struct request;
struct response;

enum byte_range_kind {
    BYTE_RANGE_WHOLE,
    BYTE_RANGE_PART,
    BYTE_RANGE_NONE /* starts after the end */
};

struct byte_range {
    uint64_t first;
    uint64_t bytes;
};

/* The range that field, the value of Range, selects in a file of file_bytes. */
enum byte_range_kind byte_range_read(struct span field, uint64_t file_bytes,
                                     struct byte_range *ret_range);

/* Responds with the file or the requested part: 200, 206, or 416 with a problem. etag is a strong
 * one, the version of the bytes. Takes ownership of fd. */
void byte_range_respond(struct request *request, struct response *response,
                        const char *content_type, const char *etag, int fd, uint64_t file_bytes);

#endif
