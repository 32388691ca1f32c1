/*
 * json_response: JSON responses made of database rows, member by member.
 *
 * json_response_open starts an object or array, json_response_close ends it; the functions between
 * add its members and the commas that separate them. Names are literals and are not escaped; values
 * are escaped.
 */
#ifndef API_HTTP_JSON_RESPONSE_H
#define API_HTTP_JSON_RESPONSE_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct pg_result;
struct request;
struct response;

enum { JSON_RESPONSE_MAX_BYTES = 4 << 20 };

struct json_response {
    struct buf json;
    bool needs_comma; /* a member precedes the next one in the same object or array */
};

void json_response_init(struct json_response *writer);
void json_response_fini(struct json_response *writer);
#define json_response_auto __attribute__((cleanup(json_response_fini))) struct json_response

/* bracket is '{' or '['; name is NULL inside an array and at the top. */
void json_response_open(struct json_response *writer, const char *name, char bracket);
void json_response_close(struct json_response *writer, char bracket);
/* A text NULL becomes null. */
void json_response_text(struct json_response *writer, const char *name, const char *text);
void json_response_i64(struct json_response *writer, const char *name, int64_t number);
void json_response_bool(struct json_response *writer, const char *name, bool value);
void json_response_null(struct json_response *writer, const char *name);
/* The names of scopes as an array. */
void json_response_scopes(struct json_response *writer, const char *name, unsigned scopes);
/* A cell of a row of result; NULL becomes null. */
void json_response_cell_text(struct json_response *writer, const char *name,
                             const struct pg_result *result, int row, int column);
void json_response_cell_i64(struct json_response *writer, const char *name,
                            const struct pg_result *result, int row, int column);

/* Sends the JSON, with Cache-Control: no-store, since it belongs to one user or team. Errors:
 * ERR_TOO_LARGE (more than JSON_RESPONSE_MAX_BYTES). */
enum err_code json_response_send(struct json_response *writer, struct request *request,
                                 struct response *response, int status, struct err *err) MUST_USE;
/* Responds with 204. */
enum err_code json_response_nothing(struct request *request, struct response *response);

/* The whole number above 0 in path parameter n. Errors: ERR_NOT_FOUND if it is none. */
enum err_code json_response_path_id(const struct request *request, int n, int64_t *ret_id,
                                    struct err *err) MUST_USE;

#endif
