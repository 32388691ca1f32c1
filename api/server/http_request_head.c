#include "api/server/http_internal.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

#include <arpa/inet.h>
#include <stdio.h>

void http_request_head_new_id(struct http_loop *loop, char id[REQUEST_ID_BYTES])
{
    /* splitmix64: ids must differ, not be secret. */
    uint64_t mixed = loop->random_state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    snprintf(id, REQUEST_ID_BYTES, "%016llx", (unsigned long long)(mixed ^ (mixed >> 31)));
}

struct span http_request_head_copy(struct arena *arena, h2o_iovec_t bytes)
{
    return span_of(arena_strndup(arena, bytes.base, bytes.len), bytes.len);
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* "%2F" would make one path ambiguous, and control characters are not allowed in paths. */
static enum err_code decode_path(struct arena *arena, struct span raw, struct span *ret_path,
                                 struct err *err)
{
    uint8_t *path = arena_new_raw(arena, uint8_t, raw.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < raw.size; i++) {
        uint8_t byte = raw.data[i];
        if (byte == '%') {
            int high = raw.size - i > 2 ? hex_digit(raw.data[i + 1]) : -1;
            int low = raw.size - i > 2 ? hex_digit(raw.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return err_set(
                    err, ERR_INVALID,
                    "the path contains a %% without two digits: write %%25 for the sign itself");
            byte = (uint8_t)(high * 16 + low);
            if (byte == '/')
                return err_set(
                    err, ERR_INVALID,
                    "the path contains an encoded slash: leave it out, no address here has one");
            i += 2;
        }
        if (byte < 0x20 || byte == 0x7f)
            return err_set(err, ERR_INVALID, "the path contains a control character: leave it out");
        path[size++] = byte;
    }
    path[size] = '\0';
    *ret_path = span_of(path, size);
    if (!span_is_utf8(*ret_path))
        return err_set(err, ERR_INVALID, "the path is not UTF-8: encode it so, in percent signs");
    return ERR_NONE;
}

/* "http://host/path", as sent to proxies, counts as "/path" (RFC 9112 §3.2.2). */
static struct span without_authority(struct span target)
{
    size_t skipped = span_starts_with(target, "https://")  ? 8
                     : span_starts_with(target, "http://") ? 7
                                                           : 0;
    if (skipped == 0)
        return target;
    struct span rest = span_of(target.data + skipped, target.size - skipped);
    const uint8_t *slash = rest.size ? memchr(rest.data, '/', rest.size) : NULL;
    return slash ? span_of(slash, rest.size - (size_t)(slash - rest.data)) : SPAN_LITERAL("/");
}

enum err_code http_request_head_fill_target(struct request *request, h2o_iovec_t target,
                                            struct err *err)
{
    struct span raw = without_authority(http_request_head_copy(request->arena, target));
    struct span raw_path;
    span_split(raw, '?', &raw_path, &request->query);
    request->path = raw_path; /* for the problem document, if it is not well formed */
    if (!span_starts_with(raw_path, "/")) {
        request->path = SPAN_LITERAL("");
        return err_set(err, ERR_INVALID, "the path must begin with a slash");
    }
    enum err_code code = decode_path(request->arena, raw_path, &request->path, err);
    if (!code && request_check_query_size(request, err)) {
        request->query = (struct span){0};
        return ERR_INVALID;
    }
    if (code) {
        request->path = SPAN_LITERAL("");
        /* API clients do not get a page, however the path is spelled. */
        request->is_page_malformed =
            !span_starts_with(raw_path, "/api/") && !span_starts_with(raw_path, "/assets/");
    }
    return code;
}

void http_request_head_fill_fields(struct request *request, const h2o_req_t *req)
{
    struct http_field *fields = arena_new(request->arena, struct http_field, req->headers.size + 1);
    for (size_t i = 0; i < req->headers.size; i++) {
        const h2o_header_t *header = &req->headers.entries[i];
        fields[i].name = http_request_head_copy(request->arena, *header->name);
        fields[i].value = http_request_head_copy(request->arena, header->value);
    }
    fields[req->headers.size].name = SPAN_LITERAL("host");
    fields[req->headers.size].value = http_request_head_copy(request->arena, req->input.authority);
    request->fields = fields;
    request->field_count = req->headers.size + 1;
}

/* The last address of the last such field: the one that the nearest proxy has added, as a field of
 * its own or after those of the client. */
static struct span last_forwarded_for(const struct request *request)
{
    struct span last = {0};
    for (size_t i = 0; i < request->field_count; i++) {
        struct span rest = request->fields[i].value, before;
        if (!span_equal_text(request->fields[i].name, "x-forwarded-for"))
            continue;
        while (rest.size > 0) {
            span_split(rest, ',', &before, &rest);
            last = span_trim(before);
        }
    }
    return last;
}

/* The address in "[address]:port" and "[address]", and in IPv4's "address:port". */
static struct span without_port(struct span text)
{
    const uint8_t *colon = text.size ? memchr(text.data, ':', text.size) : NULL;
    const uint8_t *bracket = text.size ? memchr(text.data, ']', text.size) : NULL;
    if (bracket && text.data[0] == '[')
        return span_of(text.data + 1, (size_t)(bracket - text.data - 1));
    bool is_only = colon && !memchr(colon + 1, ':', (size_t)(text.data + text.size - colon - 1));
    return is_only ? span_of(text.data, (size_t)(colon - text.data)) : text;
}

/* The canonical form, which limits and logs use; false if it is not an address. IPv4 arrives as
 * IPv6 on a dual-stack socket, and a link-local address with the name of the link after it. */
static bool read_address(struct span text, char ret_address[REQUEST_ADDRESS_BYTES])
{
    char plain[REQUEST_ADDRESS_BYTES];
    struct in6_addr parsed;
    struct span link;
    span_split(without_port(text), '%', &text, &link);
    if (text.size >= sizeof(plain))
        return false;
    snprintf(plain, sizeof(plain), "%.*s", SPAN_PRINT(text));
    if (inet_pton(AF_INET, plain, &parsed) == 1)
        return inet_ntop(AF_INET, &parsed, ret_address, REQUEST_ADDRESS_BYTES) != NULL;
    if (inet_pton(AF_INET6, plain, &parsed) != 1)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&parsed))
        return inet_ntop(AF_INET, &parsed.s6_addr[12], ret_address, REQUEST_ADDRESS_BYTES) != NULL;
    return inet_ntop(AF_INET6, &parsed, ret_address, REQUEST_ADDRESS_BYTES) != NULL;
}

void http_request_head_fill_address(struct request *request, h2o_conn_t *conn,
                                    bool trust_forwarded_for)
{
    struct sockaddr_storage address;
    char text[NI_MAXHOST];
    socklen_t size = conn->callbacks->get_peername(conn, (struct sockaddr *)&address);
    size_t text_size =
        size ? h2o_socket_getnumerichost((struct sockaddr *)&address, size, text) : SIZE_MAX;
    struct span shown = text_size == SIZE_MAX ? SPAN_LITERAL("-") : span_of(text, text_size);
    if (!trust_forwarded_for || !read_address(last_forwarded_for(request), request->address))
        if (!read_address(shown, request->address))
            snprintf(request->address, sizeof(request->address), "-");
}
