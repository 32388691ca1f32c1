#include "lib/profile/pyroscope/connect.h"

#include "lib/base/buf.h"

#include <strings.h>

static const struct {
    const char *code;
    int status;
} errors[ERR_CODE_COUNT] = {
    [ERR_INVALID] = {"invalid_argument", 400},
    [ERR_UNSUPPORTED] = {"invalid_argument", 400},
    [ERR_TOO_LARGE] = {"invalid_argument", 400},
    [ERR_NOT_FOUND] = {"not_found", 404},
    [ERR_GONE] = {"not_found", 404},
    [ERR_CONFLICT] = {"already_exists", 409},
    [ERR_UNAUTHENTICATED] = {"unauthenticated", 401},
    [ERR_FORBIDDEN] = {"permission_denied", 403},
    [ERR_RATE_LIMITED] = {"resource_exhausted", 429},
    [ERR_QUOTA] = {"resource_exhausted", 429},
    [ERR_LIMIT] = {"resource_exhausted", 422},
    [ERR_BUSY] = {"unavailable", 503},
    [ERR_TIMEOUT] = {"deadline_exceeded", 504},
    [ERR_CANCELLED] = {"canceled", 499},
    [ERR_CORRUPT] = {"data_loss", 500},
    [ERR_LOST] = {"data_loss", 500},
    [ERR_IO] = {"unavailable", 503},
    [ERR_DATABASE] = {"unavailable", 503},
    [ERR_NETWORK] = {"unavailable", 503},
};

bool connect_find_encoding(struct span content_type, enum connect_encoding *ret_encoding)
{
    static const struct {
        const char *name;
        enum connect_encoding encoding;
    } types[] = {
        {"application/proto", CONNECT_PROTOBUF},
        {"application/protobuf", CONNECT_PROTOBUF},
        {"application/x-protobuf", CONNECT_PROTOBUF},
        {"application/json", CONNECT_JSON},
    };
    struct span type, parameters;
    span_split(content_type, ';', &type, &parameters);
    type = span_trim(type);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (type.size == strlen(types[i].name) &&
            strncasecmp((const char *)type.data, types[i].name, type.size) == 0) {
            *ret_encoding = types[i].encoding;
            return true;
        }
    }
    return false;
}

const char *connect_content_type(enum connect_encoding encoding)
{
    return encoding == CONNECT_JSON ? "application/json" : "application/proto";
}

int connect_status(enum err_code code)
{
    bool is_known = (unsigned)code < ERR_CODE_COUNT && errors[code].code;
    return is_known ? errors[code].status : 500;
}

const char *connect_code(enum err_code code)
{
    bool is_known = (unsigned)code < ERR_CODE_COUNT && errors[code].code;
    return is_known ? errors[code].code : "internal";
}

void connect_write_empty(enum connect_encoding encoding, struct buf *body)
{
    if (encoding == CONNECT_JSON)
        buf_append_text(body, "{}");
}
