/*
 * s3_xml: reads the small XML answers of S3 servers: listings, errors, ids of uploads.
 *
 * Elements and text only. Attributes, comments and the XML declaration are passed over; a document
 * type, CDATA, entities of its own, trees deeper than 16 and texts over 8 KiB are refused, so
 * nothing expands. How large a document may be is the caller's to say. Threads: any.
 */
#ifndef LIB_IO_S3_XML_H
#define LIB_IO_S3_XML_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { S3_XML_MAX_DEPTH = 16, S3_XML_MAX_PATH_BYTES = 256, S3_XML_MAX_TEXT_BYTES = 8 << 10 };

/*
 * Called at the end of every element: path is its name behind those around it, as in
 * "ListBucketResult/Contents/Key" (prefixes of name spaces are cut off); text is what stood in it
 * behind its last inner element, with entities resolved, trimmed. Both are valid during the call.
 */
typedef enum err_code s3_xml_visit(void *context, const char *path, struct span text,
                                   struct err *err);

/* Handles: ERR_INVALID (not well-formed, or with parts that no answer has), ERR_TOO_LARGE. Other
 * codes are visit's, which end the reading. */
enum err_code s3_xml_read(struct span xml, s3_xml_visit *visit, void *context,
                          struct err *err) MUST_USE;

/* An RFC 3339 time in UTC, "2026-01-02T03:04:05.678Z", as wall ns; 0 when it is none. */
int64_t s3_xml_time(struct span text);

#endif
