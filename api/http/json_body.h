/*
 * json_body: reads a request's JSON object, field by field, with errors that name the field.
 *
 * Unknown fields are refused, so that typing errors are noticed. Texts and the parsed document live
 * in the request's arena.
 */
#ifndef API_HTTP_JSON_BODY_H
#define API_HTTP_JSON_BODY_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct json_body;

/* Parses the body. known is the NULL-terminated list of the names that the object may contain. An
 * empty body reads as {}. Errors: ERR_INVALID. */
enum err_code json_body_parse(struct request *request, const char *const *known,
                              struct json_body **ret_body, struct err *err) MUST_USE;
/* Whether the field is present (null counts as present). */
bool json_body_has(const struct json_body *body, const char *name);
bool json_body_is_null(const struct json_body *body, const char *name);
/* A text of min_bytes to max_bytes, NUL-terminated and without NUL inside; absent or null reads as
 * NULL when min_bytes is 0, otherwise it is an error. Errors: ERR_INVALID. */
enum err_code json_body_text(const struct json_body *body, const char *name, size_t min_bytes,
                             size_t max_bytes, const char **ret_text, struct err *err) MUST_USE;
/* A whole number; absent or null reads as fallback. Errors: ERR_INVALID. */
enum err_code json_body_i64(const struct json_body *body, const char *name, int64_t low,
                            int64_t high, int64_t fallback, int64_t *ret_number,
                            struct err *err) MUST_USE;
/* true or false; absent or null reads as fallback. Errors: ERR_INVALID. */
enum err_code json_body_bool(const struct json_body *body, const char *name, bool fallback,
                             bool *ret_value, struct err *err) MUST_USE;
/* An array of at most max_count texts; absent reads as none. Errors: ERR_INVALID. */
enum err_code json_body_texts(const struct json_body *body, const char *name, size_t max_count,
                              const char *const **ret_texts, size_t *ret_count,
                              struct err *err) MUST_USE;
/* An array of at most max_count objects; absent reads as none. known is the NULL-terminated list of
 * the names that each object may contain. Errors: ERR_INVALID. */
enum err_code json_body_objects(const struct json_body *body, const char *name, size_t max_count,
                                const char *const *known, struct json_body *const **ret_objects,
                                size_t *ret_count, struct err *err) MUST_USE;

#endif
