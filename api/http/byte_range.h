/*
 * byte_range: part of a file, for who asks with Range (RFC 9110, section 14).
 *
 * One range of bytes is known, of which the file has at least the first: "bytes=0-99",
 * "bytes=100-", "bytes=-100". Everything else in a Range field (other units, several ranges, what
 * is malformed) is as if there were none, which the RFC allows, and so is any Range whose If-Range
 * names another version.
 */
#ifndef API_HTTP_BYTE_RANGE_H
#define API_HTTP_BYTE_RANGE_H

#include "lib/base/buf.h"

#include <stdint.h>

struct request;
struct response;

enum byte_range_kind { BYTE_RANGE_WHOLE, BYTE_RANGE_PART, BYTE_RANGE_NONE /* behind the end */ };

struct byte_range {
    uint64_t first;
    uint64_t bytes;
};

/* What field, the value of Range, asks for of a file of so many bytes. */
enum byte_range_kind byte_range_read(struct span field, uint64_t file_bytes,
                                     struct byte_range *ret_range);

/*
 * The file, or the part that the request asks for, as the body: 200, 206, or 416 with a problem.
 * etag is a strong one, the version of the bytes. Takes over fd.
 */
void byte_range_respond(struct request *request, struct response *response,
                        const char *content_type, const char *etag, int fd, uint64_t file_bytes);

#endif
