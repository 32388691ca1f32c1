/*
 * s3_xml: parses the small XML responses of S3 servers: listings, errors, upload ids.
 *
 * expat parses; only elements and text are used. Attributes, comments and the XML declaration are
 * skipped. A document type, CDATA, custom entities, trees deeper than 16 and texts over 8 KiB are
 * rejected, so nothing expands. The caller limits the size of a document. Threads: any.
 */
#ifndef LIB_IO_S3_XML_H
#define LIB_IO_S3_XML_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stddef.h>
#include <stdint.h>

enum { S3_XML_MAX_DEPTH = 16, S3_XML_MAX_PATH_BYTES = 256, S3_XML_MAX_TEXT_BYTES = 8 << 10 };

/*
 * Called at the end of every element. path has the names of the enclosing elements and that of the
 * element, as in "ListBucketResult/Contents/Key" (without namespace prefixes). text is the trimmed
 * text of the element after its last inner element, with entities resolved. Both are valid during
 * the call.
 */
typedef enum err_code s3_xml_visit(void *context, const char *path, struct span text,
                                   struct err *err);

/* Errors: ERR_INVALID (not well-formed, or with parts that no response has), ERR_TOO_LARGE.
 * Other codes come from visit and end the parsing. */
enum err_code s3_xml_read(struct span xml, s3_xml_visit *visit, void *context,
                          struct err *err) MUST_USE;

/* Parses an RFC 3339 time in UTC, "2026-01-02T03:04:05.678Z", to wall ns; 0 if it is invalid. */
int64_t s3_xml_time(struct span text);

#endif
