#include "api/http/request.h"

#include "api/core/server.h"
#include "api/http/rate_limiter.h"
#include "api/http/request_limits.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

/* The client of the request's slot: an address without credentials, or a team. */
static void name_client(struct request *request, struct concurrency_slot *slot)
{
    slot->is_anonymous = request->principal.kind == PRINCIPAL_ANONYMOUS;
    if (slot->is_anonymous) {
        char *client = arena_new(request->arena, char, RATE_LIMITER_SUBSCRIBER_BYTES);
        rate_limiter_site(span_text(request->address), client);
        slot->client = client;
    } else {
        slot->client = arena_printf(request->arena, "team %" PRId64, request->principal.tenant_id);
    }
}

void request_note_slow(struct request *request)
{
    if (request->worker_slot.is_held)
        concurrency_limit_make_slow(request->server->limits->workers, &request->worker_slot);
}

enum err_code request_take_slot(struct request *request, struct concurrency_limit *limit,
                                const char *key, const char *busy_message, struct err *err)
{
    struct concurrency_slot *slot = &request->concurrency_slot;
    if (!slot->key) { /* other threads read them as soon as the slot is held or waited for */
        name_client(request, slot);
        slot->key = key;
    }
    if (concurrency_limit_take(limit, slot)) {
        request_note_slow(request);
        return ERR_NONE;
    }
    err_set(err, ERR_BUSY, "%s", busy_message);
    err->retry_after_s = 5;
    return ERR_BUSY;
}

enum err_code request_take_worker(struct request *request, struct concurrency_limit *shares,
                                  struct err *err)
{
    struct concurrency_slot *slot = &request->worker_slot;
    if (!slot->key) {
        name_client(request, slot);
        slot->most = INT_MAX; /* the rules for the client bound it */
        slot->key = slot->client;
    }
    if (!slot->is_held)
        slot->is_light = !request->concurrency_slot.is_held;
    if (concurrency_limit_take(shares, slot))
        return ERR_NONE;
    err_set(err, ERR_BUSY,
            "the server handles as many requests of your %s as it may at a time, and "
            "others wait; try again in a few seconds",
            slot->is_anonymous ? "address" : "team");
    err->retry_after_s = 5;
    return ERR_BUSY;
}

struct span request_field(const struct request *request, const char *name)
{
    for (size_t i = 0; i < request->field_count; i++) {
        if (span_equal_text(request->fields[i].name, name))
            return request->fields[i].value;
    }
    return (struct span){0};
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

/* The next decoded byte; *at, below raw.size, advances. As in HTML forms: "+" is a space; a "%"
 * without two hexadecimal digits stays. */
static uint8_t decode_byte(struct span raw, size_t *at)
{
    const uint8_t byte = raw.data[(*at)++];
    if (byte == '+')
        return ' ';
    if (byte != '%' || raw.size - *at < 2)
        return byte;
    const int high = hex_digit(raw.data[*at]), low = hex_digit(raw.data[*at + 1]);
    if (high < 0 || low < 0)
        return byte;
    *at += 2;
    return (uint8_t)(high * 16 + low);
}

static struct span decode_query(struct arena *arena, struct span raw)
{
    uint8_t *decoded = arena_new_raw(arena, uint8_t, raw.size + 1);
    size_t size = 0, at = 0;
    while (at < raw.size)
        decoded[size++] = decode_byte(raw, &at);
    decoded[size] = '\0';
    return span_of(decoded, size);
}

/* Compares an encoded name without decoding it into memory. */
static bool has_name(struct span raw, const char *name)
{
    size_t at = 0;
    for (; at < raw.size && *name; name++) {
        if (decode_byte(raw, &at) != (uint8_t)*name)
            return false;
    }
    return at == raw.size && !*name;
}

/* Removes "name=value" from *rest, both still encoded; false at the end. */
static bool take_parameter(struct span *rest, struct span *ret_name, struct span *ret_value)
{
    while (rest->size > 0) {
        struct span parameter = *rest, after = {0};
        if (span_split(*rest, '&', &parameter, &after))
            *rest = after;
        else
            rest->size = 0;
        if (parameter.size == 0)
            continue;
        *ret_value = (struct span){0};
        if (!span_split(parameter, '=', ret_name, ret_value))
            *ret_name = parameter;
        return true;
    }
    return false;
}

enum err_code request_check_query_size(const struct request *request, struct err *err)
{
    struct span rest = request->query, raw_name, raw_value;
    size_t count = 0;
    if (request->query.size > REQUEST_MAX_QUERY_BYTES)
        return err_set(err, ERR_INVALID, "the query of the address has more than %d bytes",
                       REQUEST_MAX_QUERY_BYTES);
    while (take_parameter(&rest, &raw_name, &raw_value))
        count++;
    if (count > REQUEST_MAX_PARAMETERS)
        return err_set(err, ERR_INVALID, "the query of the address has more than %d parameters",
                       REQUEST_MAX_PARAMETERS);
    return ERR_NONE;
}

bool request_query_nth(const struct request *request, const char *name, size_t n,
                       struct span *ret_value)
{
    struct span rest = request->query, raw_name, raw_value;
    while (take_parameter(&rest, &raw_name, &raw_value)) {
        if (!has_name(raw_name, name))
            continue;
        if (n-- > 0)
            continue;
        *ret_value = decode_query(request->arena, raw_value);
        return true;
    }
    return false;
}

bool request_query(const struct request *request, const char *name, struct span *ret_value)
{
    return request_query_nth(request, name, 0, ret_value);
}

enum err_code request_query_i64(const struct request *request, const char *name, int64_t low,
                                int64_t high, int64_t fallback, int64_t *ret_number,
                                struct err *err)
{
    struct span text;
    if (!request_query(request, name, &text)) {
        *ret_number = fallback;
        return ERR_NONE;
    }
    int64_t number;
    if (!span_parse_i64(text, &number) || number < low || number > high)
        return err_set(err, ERR_INVALID,
                       "the parameter %s must be a whole number from %lld to %lld", name,
                       (long long)low, (long long)high);
    *ret_number = number;
    return ERR_NONE;
}

struct span request_cookie(const struct request *request, const char *name)
{
    for (size_t i = 0; i < request->field_count; i++) {
        if (!span_equal_text(request->fields[i].name, "cookie"))
            continue;
        struct span rest = request->fields[i].value;
        while (rest.size > 0) {
            struct span pair = rest, after = {0};
            span_split(rest, ';', &pair, &after);
            rest = after;
            struct span cookie_name, value;
            if (span_split(span_trim(pair), '=', &cookie_name, &value) &&
                span_equal_text(span_trim(cookie_name), name))
                return span_trim(value);
        }
    }
    return (struct span){0};
}

/* "q=0", "q=0.", "q=0.000": the coding is named only to refuse it. */
static bool is_refused(struct span parameters)
{
    struct span name, value;
    if (!span_split(span_trim(parameters), '=', &name, &value))
        return false;
    name = span_trim(name);
    value = span_trim(value);
    if (!span_equal_text(name, "q") && !span_equal_text(name, "Q"))
        return false;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] != '0' && value.data[i] != '.')
            return false;
    }
    return true;
}

static bool is_same_word(struct span word, const char *lower_case)
{
    size_t size = strlen(lower_case);
    return word.size == size && strncasecmp((const char *)word.data, lower_case, size) == 0;
}

bool request_accepts_encoding(const struct request *request, const char *coding)
{
    struct span rest = request_field(request, "accept-encoding");
    while (rest.size > 0) {
        struct span item, after, name, parameters;
        span_split(rest, ',', &item, &after);
        rest = after;
        span_split(item, ';', &name, &parameters);
        if (is_same_word(span_trim(name), coding))
            return !is_refused(parameters);
    }
    return false;
}

/* The name as it is in the list; NULL if it is not there. */
static const char *find_name(struct span name, const char *const *names)
{
    for (; *names; names++) {
        if (span_equal_text(name, *names))
            return *names;
    }
    return NULL;
}

static enum err_code refuse_unknown(struct span name, struct err *err)
{
    char shown[64];
    size_t size = 0;
    for (; size < name.size && size < sizeof(shown) - 1; size++) {
        uint8_t byte = name.data[size];
        shown[size] = byte >= 0x20 && byte < 0x7f ? (char)byte : '?';
    }
    shown[size] = '\0';
    return err_set(err, ERR_INVALID, "there is no parameter \"%s\" here: leave it out", shown);
}

static bool has_broken_escape(struct span raw)
{
    for (size_t i = 0; i < raw.size; i++) {
        if (raw.data[i] == '%' &&
            (raw.size - i < 3 || hex_digit(raw.data[i + 1]) < 0 || hex_digit(raw.data[i + 2]) < 0))
            return true;
    }
    return false;
}

enum err_code request_check_parameters(const struct request *request, const char *const *single,
                                       const char *const *repeatable, struct err *err)
{
    struct span rest = request->query, raw_name, raw_value, second;
    while (take_parameter(&rest, &raw_name, &raw_value)) {
        struct span name = decode_query(request->arena, raw_name);
        const char *once = find_name(name, single);
        const char *known = once || !repeatable ? once : find_name(name, repeatable);
        if (!known && !repeatable)
            continue;
        if (!known)
            return refuse_unknown(name, err);
        if (has_broken_escape(raw_value))
            return err_set(err, ERR_INVALID,
                           "the parameter %s has a %% without two hexadecimal digits after it: "
                           "write %%25 for the sign itself",
                           known);
        /* A repeated parameter is refused: its client either means both values or does not know of
         * one of them. */
        if (once && request_query_nth(request, once, 1, &second))
            return err_set(err, ERR_INVALID,
                           "the parameter %s is given more than once: leave out all but one", once);
    }
    return ERR_NONE;
}

enum err_code request_check_query(const struct request *request, const char *const *known,
                                  struct err *err)
{
    static const char *const none[] = {NULL};
    return request_check_parameters(request, known, none, err);
}
