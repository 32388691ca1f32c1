#include "api/http/json_response.h"

#include "api/http/principal.h"
#include "api/http/request.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>

void json_response_init(struct json_response *writer)
{
    buf_init(&writer->json, JSON_RESPONSE_MAX_BYTES);
    writer->needs_comma = false;
}

void json_response_fini(struct json_response *writer)
{
    buf_fini(&writer->json);
}

static void start_member(struct json_response *writer, const char *name)
{
    if (writer->needs_comma)
        buf_append_byte(&writer->json, ',');
    writer->needs_comma = true;
    if (name)
        buf_printf(&writer->json, "\"%s\":", name);
}

void json_response_open(struct json_response *writer, const char *name, char bracket)
{
    start_member(writer, name);
    buf_append_byte(&writer->json, (uint8_t)bracket);
    writer->needs_comma = false;
}

void json_response_close(struct json_response *writer, char bracket)
{
    buf_append_byte(&writer->json, (uint8_t)bracket);
    writer->needs_comma = true;
}

void json_response_text(struct json_response *writer, const char *name, const char *text)
{
    start_member(writer, name);
    if (text)
        buf_append_json(&writer->json, span_text(text));
    else
        buf_append_text(&writer->json, "null");
}

void json_response_i64(struct json_response *writer, const char *name, int64_t number)
{
    start_member(writer, name);
    buf_printf(&writer->json, "%" PRId64, number);
}

void json_response_bool(struct json_response *writer, const char *name, bool value)
{
    start_member(writer, name);
    buf_append_text(&writer->json, value ? "true" : "false");
}

void json_response_null(struct json_response *writer, const char *name)
{
    json_response_text(writer, name, NULL);
}

void json_response_scopes(struct json_response *writer, const char *name, unsigned scopes)
{
    start_member(writer, name);
    principal_append_scopes(&writer->json, scopes);
}

void json_response_cell_text(struct json_response *writer, const char *name,
                             const struct pg_result *result, int row, int column)
{
    bool is_null = pg_is_null(result, row, column);
    json_response_text(writer, name, is_null ? NULL : pg_get_text(result, row, column));
}

void json_response_cell_i64(struct json_response *writer, const char *name,
                            const struct pg_result *result, int row, int column)
{
    if (pg_is_null(result, row, column))
        json_response_null(writer, name);
    else
        json_response_i64(writer, name, pg_get_i64(result, row, column));
}

enum err_code json_response_send(struct json_response *writer, struct request *request,
                                 struct response *response, int status, struct err *err)
{
    response_add(request, response, "cache-control", "no-store");
    return response_buf(request, response, status, "application/json", &writer->json, err);
}

enum err_code json_response_nothing(struct request *request, struct response *response)
{
    (void)request;
    response->status = 204;
    response->content_type = NULL;
    response->body_kind = RESPONSE_EMPTY;
    return ERR_NONE;
}

enum err_code json_response_path_id(const struct request *request, int n, int64_t *ret_id,
                                    struct err *err)
{
    if (span_parse_i64(request->path_params[n], ret_id) && *ret_id > 0)
        return ERR_NONE;
    return err_set(
        err, ERR_NOT_FOUND,
        "There is nothing with the id \"%.*s\": ids are whole numbers, as the lists show them",
        (int)(request->path_params[n].size < 40 ? request->path_params[n].size : 40),
        (const char *)request->path_params[n].data);
}
