/*
 * answer: JSON answers made of database rows, member by member.
 *
 * Members write their own comma: answer_open starts an object or array element, answer_close ends
 * it. Names are literals and are not escaped; values are.
 */
#ifndef API_HTTP_JSON_RESPONSE_H
#define API_HTTP_JSON_RESPONSE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct pg_result;
struct request;
struct response;

enum { ANSWER_MAX_BYTES = 4 << 20 };

struct answer {
    struct buf json;
    bool needs_comma;
};

void answer_init(struct answer *answer);
void answer_fini(struct answer *answer);
#define answer_auto __attribute__((cleanup(answer_fini))) struct answer

/* bracket is '{' or '['; name is NULL inside an array and at the top. */
void answer_open(struct answer *answer, const char *name, char bracket);
void answer_close(struct answer *answer, char bracket);
/* text NULL is null. */
void answer_text(struct answer *answer, const char *name, const char *text);
void answer_i64(struct answer *answer, const char *name, int64_t number);
void answer_bool(struct answer *answer, const char *name, bool value);
void answer_null(struct answer *answer, const char *name);
/* The names of scopes as an array. */
void answer_scopes(struct answer *answer, const char *name, unsigned scopes);
/* A cell of a row; NULL is null. */
void answer_cell_text(struct answer *answer, const char *name, const struct pg_result *result,
                      int row, int column);
void answer_cell_i64(struct answer *answer, const char *name, const struct pg_result *result,
                     int row, int column);

/* Sends what was written, with Cache-Control: no-store, since all of it is somebody's own. */
enum err_code answer_send(struct answer *answer, struct request *request, struct response *response,
                          int status, struct err *err) MUST_USE;
/* 204. */
enum err_code answer_nothing(struct request *request, struct response *response);

/* The whole number that path parameter n holds. Handles: ERR_NOT_FOUND when it is none. */
enum err_code answer_path_id(const struct request *request, int n, int64_t *ret_id,
                             struct err *err) MUST_USE;

#endif
