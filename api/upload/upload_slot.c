#include "api/upload/upload_slot.h"

#include "api/core/server.h"
#include "api/http/concurrency_limit.h"
#include "api/http/rate_limiter.h"
#include "api/http/request.h"
#include "api/http/request_limits.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <inttypes.h>

enum err_code upload_slot_take(struct request *request, struct err *err)
{
    struct concurrency_slot *slot = &request->concurrency_slot;
    const bool is_anonymous = request->principal.kind == PRINCIPAL_ANONYMOUS;
    if (!slot->key) { /* other threads read it as soon as the slot is held or waited for */
        if (is_anonymous) {
            char *source = arena_new(request->arena, char, RATE_LIMITER_SUBSCRIBER_BYTES);
            rate_limiter_site(span_text(request->address), source);
            slot->source = source;
        }
        slot->key = is_anonymous ? "anonymous uploads"
                                 : arena_printf(request->arena, "uploads of %" PRId64,
                                                request->principal.tenant_id);
    }
    request->may_run_again = true;
    if (concurrency_limit_take(request->server->limits->reports, slot)) {
        request_note_slow(request);
        return ERR_NONE;
    }
    err_set(err, ERR_BUSY, "%s; try again in a few seconds",
            is_anonymous ? "without credentials an address can have one upload read at a time, and "
                           "several are waiting already: sign in"
                         : "several uploads of the team are being read, and others wait");
    err->retry_after_s = 5;
    return ERR_BUSY;
}
