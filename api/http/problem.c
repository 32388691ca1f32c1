#include "api/http/problem.h"

#include "api/http/route.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

#include <stdio.h>

enum { PROBLEM_MAX_BYTES = 16384, STORAGE_RETRY_S = 30 };

struct problem_kind {
    int status;
    bool is_internal;
    const char *title;
    const char *explanation;
};

#define MISTAKE                                                                                    \
    "The server has a bug. Try again, and send the operator the request id if it fails again."

static const struct problem_kind kinds[ERR_CODE_COUNT] = {
    [ERR_NONE] = {500, true, "Internal error", MISTAKE},
    [ERR_INVALID] = {400, false, "Invalid request",
                     "Something in the request is malformed, out of range or contradictory; the "
                     "detail names it. The same request will fail again."},
    [ERR_UNSUPPORTED] = {415, false, "Unsupported",
                         "The server does not know this format, method or feature; the detail "
                         "states what it accepts instead."},
    [ERR_TOO_LARGE] = {413, false, "Too large",
                       "The request exceeds a limit of size, count or depth. Large profiles are "
                       "uploaded in parts, as `perfolio push` does by itself."},
    [ERR_NOT_FOUND] =
        {404, false, "Not found",
         "There is no such thing, or none that you may see. Links are case-sensitive."},
    [ERR_GONE] = {410, false, "Gone",
                  "It existed, but has expired or was deleted. Ask its creator for another link."},
    [ERR_CONFLICT] = {409, false, "Conflict",
                      "The present state does not allow this: it exists already or has changed "
                      "meanwhile. Reload it, then choose another name or repeat the change."},
    [ERR_STALE] = {412, false, "Changed meanwhile",
                   "Somebody else has changed this since you loaded it. Reload it, and repeat your "
                   "change if it is still needed."},
    [ERR_UNAUTHENTICATED] = {401, false, "Sign in",
                             "This needs a valid token or a signed-in browser session: sign in, or "
                             "make a token under Settings."},
    [ERR_FORBIDDEN] = {403, false, "Not allowed",
                       "Your account or token may not do this. Ask an owner of your team, or use a "
                       "token with the scope that the detail names."},
    [ERR_RATE_LIMITED] = {429, false, "Too many requests",
                          "There are too many requests; try again after the time in Retry-After."},
    [ERR_QUOTA] = {429, false, "Quota used up",
                   "A quota is used up; the detail states which, and what helps."},
    [ERR_LIMIT] = {422, false, "Costs too much",
                   "The query exceeds a limit of your team; the detail names the limit. Select "
                   "fewer series or a shorter time, or ask the operator for a higher limit."},
    [ERR_BUSY] = {503, false, "Busy",
                  "The server is overloaded or starting; try again after the time in Retry-After."},
    [ERR_TIMEOUT] = {503, false, "Timed out",
                     "The work took too long and was aborted. Try again, or reduce it with a "
                     "filter or a smaller limit."},
    [ERR_CANCELLED] = {503, false, "Cancelled",
                       "The work was aborted before it was done. Try again."},
    [ERR_CORRUPT] =
        {500, true, "Damaged data",
         "The stored data exists, but its size or checksum is wrong, so it is not served. Send the "
         "request id to the operator, who can restore the data from a backup."},
    [ERR_LOST] =
        {500, true, "Lost data",
         "The server has a record of this, but its stored data is missing although nobody deleted "
         "it. Send the request id to the operator, who can restore the data from a backup."},
    [ERR_IO] = {503, true, "Storage failed",
                "The server could not use its disk. Try again later, and send the operator the "
                "request id."},
    [ERR_DATABASE] = {503, true, "Database unavailable",
                      "The server could not use its database; try again soon."},
    [ERR_NETWORK] = {502, true, "Network error",
                     "The server could not reach another server. Try again, and send the operator "
                     "the request id if it fails again."},
    [ERR_INTERNAL] = {500, true, "Internal error", MISTAKE},
};

static const struct problem_kind *kind_of(enum err_code code)
{
    return (unsigned)code < ERR_CODE_COUNT ? &kinds[code] : &kinds[ERR_INTERNAL];
}

int problem_status(enum err_code code)
{
    return kind_of(code)->status;
}

const char *problem_title(enum err_code code)
{
    return kind_of(code)->title;
}

const char *problem_explanation(enum err_code code)
{
    return kind_of(code)->explanation;
}

bool problem_is_internal(enum err_code code)
{
    return kind_of(code)->is_internal;
}

enum err_code problem_find(struct span name)
{
    for (int code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++) {
        if (span_equal_text(name, err_code_name((enum err_code)code)))
            return (enum err_code)code;
    }
    return ERR_NONE;
}

/* An object that is unreadable now will be unreadable later, so waiting does not help: not 503. */
static int status_of(const struct err *err)
{
    return err->code == ERR_IO && err->is_unreadable ? 500 : problem_status(err->code);
}

static int retry_after_s(const struct err *err)
{
    if (err->retry_after_s > 0)
        return err->retry_after_s;
    if (err->code == ERR_IO && !err->is_unreadable)
        return STORAGE_RETRY_S;
    return status_of(err) == 503 ? 5 : 0;
}

static void add_fields(struct request *request, struct response *response, const struct err *err)
{
    response_add(request, response, "cache-control", "no-store");
    int seconds = retry_after_s(err);
    if (seconds > 0) {
        char text[16];
        snprintf(text, sizeof(text), "%d", seconds);
        response_add(request, response, "retry-after", text);
    }
    if (err->code == ERR_UNAUTHENTICATED)
        response_add(request, response, "www-authenticate", "Bearer realm=\"perfolio\"");
}

const char *problem_text(const struct err *err)
{
    const struct problem_kind *kind = kind_of(err->code);
    return kind->is_internal && !err->public_text ? kind->explanation : err_public_text(err);
}

static void write_document(const struct request *request, int status, const struct err *err,
                           struct buf *buf)
{
    const struct problem_kind *kind = kind_of(err->code);
    buf_printf(buf, "{\"type\":\"/problems/%s\",\"title\":", err_code_name(err->code));
    buf_append_json(buf, span_text(kind->title));
    buf_printf(buf, ",\"status\":%d,\"detail\":", status);
    buf_append_json(buf, span_text(problem_text(err)));
    buf_append_text(buf, ",\"instance\":");
    buf_append_json(buf, request->path);
    buf_append_text(buf, ",\"request_id\":");
    buf_append_json(buf, span_text(request->id));
    if (err->retry_after_s > 0)
        buf_printf(buf, ",\"retry_after_s\":%d", err->retry_after_s);
    buf_append_text(buf, "}\n");
}

void problem_respond_as(struct request *request, struct response *response, int status,
                        const struct err *err, const char *content_type, struct span body)
{
    response->field_count = 0;
    response->may_compress = false;
    add_fields(request, response, err);
    const char *copy = arena_strndup(request->arena, body.data, body.size);
    response_bytes(response, status, content_type, span_of(copy, body.size));
}

void problem_respond(struct request *request, struct response *response, int status,
                     const struct err *err)
{
    if (status == 0)
        status = status_of(err);
    buf_auto buf;
    buf_init(&buf, PROBLEM_MAX_BYTES);
    write_document(request, status, err, &buf);
    if (buf_failed(&buf)) { /* a very long path is left out */
        struct request short_request = *request;
        short_request.path = (struct span){0};
        buf_clear(&buf);
        write_document(&short_request, status, err, &buf);
    }
    problem_respond_as(request, response, status, err, "application/problem+json", buf_span(&buf));
}

void problem_log(const struct request *request, int status, const struct err *err)
{
    bool is_internal = problem_is_internal(err->code);
    char quoted[ERR_MESSAGE_BYTES * 2];
    log_event(is_internal ? LOG_ERROR : LOG_INFO,
              is_internal ? "request failed" : "request refused",
              "request_id=%s method=%s route=%s status=%d code=%s err=%s", request->id,
              http_method_name(request->method), request->route ? request->route->pattern : "none",
              status, err_code_name(err->code), log_quote(err->message, quoted, sizeof(quoted)));
}
