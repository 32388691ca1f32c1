/* Encodes responses in the encoding of the request. */
#include "lib/base/buf.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/protobuf.h"

#include <stdio.h>

/* Field numbers of ExportProfilesServiceResponse, its partial success, and google.rpc.Status. */
enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_SUCCESS_REJECTED = 1,
    PARTIAL_SUCCESS_MESSAGE = 2,
    STATUS_CODE = 1,
    STATUS_MESSAGE = 2
};

/* Numbers of google.rpc.Code. */
enum {
    RPC_CANCELLED = 1,
    RPC_INVALID_ARGUMENT = 3,
    RPC_DEADLINE_EXCEEDED = 4,
    RPC_NOT_FOUND = 5,
    RPC_PERMISSION_DENIED = 7,
    RPC_RESOURCE_EXHAUSTED = 8,
    RPC_FAILED_PRECONDITION = 9,
    RPC_UNIMPLEMENTED = 12,
    RPC_INTERNAL = 13,
    RPC_UNAVAILABLE = 14,
    RPC_DATA_LOSS = 15,
    RPC_UNAUTHENTICATED = 16
};

static int rpc_code(enum err_code code)
{
    switch (code) {
    case ERR_INVALID:
        return RPC_INVALID_ARGUMENT;
    case ERR_UNSUPPORTED:
        return RPC_UNIMPLEMENTED;
    case ERR_TOO_LARGE:
    case ERR_RATE_LIMITED:
    case ERR_QUOTA:
    case ERR_LIMIT:
        return RPC_RESOURCE_EXHAUSTED;
    case ERR_NOT_FOUND:
    case ERR_GONE:
        return RPC_NOT_FOUND;
    case ERR_CONFLICT:
    case ERR_STALE:
        return RPC_FAILED_PRECONDITION;
    case ERR_UNAUTHENTICATED:
        return RPC_UNAUTHENTICATED;
    case ERR_FORBIDDEN:
        return RPC_PERMISSION_DENIED;
    case ERR_BUSY:
    case ERR_DATABASE:
    case ERR_NETWORK:
    case ERR_IO:
        return RPC_UNAVAILABLE;
    case ERR_TIMEOUT:
        return RPC_DEADLINE_EXCEEDED;
    case ERR_CANCELLED:
        return RPC_CANCELLED;
    case ERR_CORRUPT:
    case ERR_LOST:
        return RPC_DATA_LOSS;
    case ERR_NONE:
    case ERR_INTERNAL:
    case ERR_CODE_COUNT:
        break;
    }
    return RPC_INTERNAL;
}

static void write_varint(struct buf *body, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(body, (uint8_t)(number | 0x80));
    buf_append_byte(body, (uint8_t)number);
}

static void write_number(struct buf *body, uint32_t field, uint64_t number)
{
    if (number == 0)
        return;
    write_varint(body, (uint64_t)field << 3);
    write_varint(body, number);
}

static void write_bytes(struct buf *body, uint32_t field, struct span bytes)
{
    if (bytes.size == 0)
        return;
    write_varint(body, (uint64_t)field << 3 | 2);
    write_varint(body, bytes.size);
    buf_append_span(body, bytes);
}

void otlp_write_response(enum otlp_encoding encoding, const struct otlp_result *result,
                         struct buf *body)
{
    const struct span message = span_text(result->message);
    const bool is_partial = result->rejected_profiles || message.size;
    if (encoding == OTLP_JSON) {
        buf_append_text(body, "{");
        if (is_partial) {
            buf_printf(body, "\"partialSuccess\":{\"rejectedProfiles\":\"%u\",\"errorMessage\":",
                       result->rejected_profiles);
            buf_append_json(body, message);
            buf_append_text(body, "}");
        }
        buf_append_text(body, "}");
        return;
    }
    buf_auto partial;
    buf_init(&partial, OTLP_MESSAGE_BYTES * 2);
    write_number(&partial, PARTIAL_SUCCESS_REJECTED, result->rejected_profiles);
    write_bytes(&partial, PARTIAL_SUCCESS_MESSAGE, message);
    write_bytes(body, RESPONSE_PARTIAL_SUCCESS, buf_span(&partial));
}

void otlp_write_status(enum otlp_encoding encoding, enum err_code code, const char *message,
                       struct buf *body)
{
    if (encoding == OTLP_PROTOBUF) {
        write_number(body, STATUS_CODE, (uint64_t)rpc_code(code));
        write_bytes(body, STATUS_MESSAGE, span_text(message));
        return;
    }
    buf_printf(body, "{\"code\":%d,\"message\":", rpc_code(code));
    buf_append_json(body, span_text(message));
    buf_append_text(body, "}");
}

/* The last field with that number and type; all zeros if there is none. */
static bool find_field(struct span message, uint32_t id, enum protobuf_type type,
                       struct protobuf_field *ret_field)
{
    const uint8_t *at = message.data, *end = message.size ? at + message.size : at;
    *ret_field = (struct protobuf_field){0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == id && field.type == type)
            *ret_field = field;
    }
    return true;
}

static bool read_message(struct span message, uint32_t id, char *ret_message)
{
    struct protobuf_field field;
    if (!find_field(message, id, PROTOBUF_BYTES, &field))
        return false;
    snprintf(ret_message, OTLP_MESSAGE_BYTES, "%.*s", SPAN_PRINT(field.bytes));
    return true;
}

bool otlp_read_response(struct span body, uint64_t *ret_rejected, char *ret_message)
{
    struct protobuf_field partial, rejected;
    if (!find_field(body, RESPONSE_PARTIAL_SUCCESS, PROTOBUF_BYTES, &partial) ||
        !find_field(partial.bytes, PARTIAL_SUCCESS_REJECTED, PROTOBUF_VARINT, &rejected))
        return false;
    *ret_rejected = rejected.number;
    return read_message(partial.bytes, PARTIAL_SUCCESS_MESSAGE, ret_message);
}

bool otlp_read_status(struct span body, char *ret_message)
{
    return read_message(body, STATUS_MESSAGE, ret_message);
}
