#include "api/ingest/ingest_body.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/request.h"
#include "api/ingest/age_warning.h"
#include "api/ingest/batch_id.h"
#include "api/ingest/ingest_request.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/profile.h"
#include "store/store.h"

#include <string.h>
#include <strings.h>

enum { WARNING_MAX_BYTES = 2000 };

/* Memory of a body: the expanded bytes, a profile expanded from it, and three times as much for the
 * decoded data. JSON takes twelve times its text. */
enum { MEMORY_FACTOR = MEMORY_GATE_MEMORY_FACTOR + 1, JSON_FACTOR = 12 };
static const uint64_t most_bytes = (uint64_t)INGEST_BODY_EXPANDED_BYTES * (JSON_FACTOR + 4);

static bool is_named(struct span text, const char *name)
{
    return text.size == strlen(name) && strncasecmp((const char *)text.data, name, text.size) == 0;
}

static bool find_method(const struct request *request, enum compress_method *ret_method)
{
    const struct span encoding = span_trim(request_field(request, "content-encoding"));
    *ret_method = COMPRESS_NONE;
    if (encoding.size == 0 || is_named(encoding, "identity"))
        return true;
    for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        *ret_method = (enum compress_method)method;
        if (is_named(encoding, compress_name(*ret_method)))
            return true;
    }
    return false;
}

bool ingest_body_knows_encoding(const struct request *request)
{
    enum compress_method method;
    return find_method(request, &method);
}

enum err_code ingest_body_check_encoding(const struct request *request, struct err *err)
{
    return ingest_body_knows_encoding(request)
               ? ERR_NONE
               : err_set(err, ERR_UNSUPPORTED,
                         "Content-Encoding must be one of identity, gzip and zstd");
}

static uint64_t min_bytes(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct attempt {
    uint64_t memory_bytes;
    size_t expanded_bytes;
    struct profile_limits limits;
    bool is_last;
};

static struct attempt plan_attempt(const struct memory_gate *gate, uint64_t memory_bytes)
{
    const uint64_t most = min_bytes(most_bytes, memory_gate_max_bytes(gate));
    struct attempt attempt = {.memory_bytes = min_bytes(memory_bytes, most),
                              .is_last = memory_bytes >= most};
    attempt.expanded_bytes =
        (size_t)min_bytes(INGEST_BODY_EXPANDED_BYTES, attempt.memory_bytes / MEMORY_FACTOR);
    const uint64_t memory = attempt.memory_bytes - 2 * attempt.expanded_bytes;
    attempt.limits.raw_bytes = attempt.expanded_bytes;
    attempt.limits.memory_bytes = memory;
    attempt.limits.json_bytes = (size_t)min_bytes(attempt.expanded_bytes, memory / JSON_FACTOR);
    return attempt;
}

static enum err_code expand_and_read(struct request *request, enum compress_method method,
                                     const struct attempt *attempt, ingest_body_reader read,
                                     void *context, struct err *err)
{
    if (method == COMPRESS_NONE)
        return read(request, context, request->body, &attempt->limits, err);
    buf_auto expanded;
    buf_init(&expanded, attempt->expanded_bytes);
    enum err_code code =
        compress_expand_ratio(method, request->body, attempt->limits.expansion_ratio,
                              attempt->limits.expansion_setting, &expanded, err);
    if (code == ERR_TOO_LARGE && err->is_final)
        return code;
    if (code == ERR_TOO_LARGE && attempt->is_last)
        return err_set(err, ERR_TOO_LARGE,
                       "the body expands to more than %zu bytes, the limit of one request, which "
                       "no setting changes: send fewer profiles at once",
                       attempt->expanded_bytes);
    if (code)
        return err_add(err, "the body does not have the encoding in Content-Encoding");
    return read(request, context, buf_span(&expanded), &attempt->limits, err);
}

enum err_code ingest_body_read(struct request *request, struct ingest_request *ingest_request,
                               ingest_body_reader read, void *context, struct err *err)
{
    struct memory_gate *gate = request->server->memory_gate;
    const uint64_t samples = request->server->settings->max_profile_samples;
    enum compress_method method;
    if (!find_method(request, &method))
        return ingest_body_check_encoding(request, err);
    for (uint64_t memory_bytes = MEMORY_GATE_LIGHT_PEAK;;
         memory_bytes *= MEMORY_GATE_MEMORY_FACTOR) {
        struct attempt attempt = plan_attempt(gate, memory_bytes);
        attempt.limits.sample_count = samples > UINT32_MAX ? UINT32_MAX : (uint32_t)samples;
        ingest_request_set_limits(ingest_request, &attempt.limits);
        const uint64_t taken =
            attempt.memory_bytes <= MEMORY_GATE_LIGHT_PEAK ? 0 : attempt.memory_bytes;
        enum err_code code =
            memory_gate_enter(gate, request->principal.tenant_id, taken, "this body", err);
        if (code)
            return code;
        ingest_request_restart(ingest_request);
        code = expand_and_read(request, method, &attempt, read, context, err);
        memory_gate_leave(gate, request->principal.tenant_id, taken);
        if (code != ERR_TOO_LARGE || err->is_final || attempt.is_last)
            return ingest_request_explain(ingest_request, &attempt.limits, code, err);
    }
}

static enum err_code find_id(const struct request *request,
                             const struct ingest_body_profile *profile,
                             uint8_t ret_id[STORE_BATCH_ID_BYTES], bool *ret_has_id,
                             struct err *err)
{
    const struct batch_id_source id_source = {.decoded = profile->source,
                                              .time_ns = profile->time_ns,
                                              .is_ambiguous = profile->is_ambiguous,
                                              .end_ns = profile->end_ns,
                                              .content = profile->content,
                                              .sender_id = profile->sender_id,
                                              .number = profile->number};
    return batch_id_find(request, &id_source, ret_id, ret_has_id, err);
}

void ingest_body_add_age_warning(struct request *request, struct response *response)
{
    const char *text = age_warning_text(request);
    if (text)
        response_add(request, response, "perfolio-warning", text);
}

void ingest_body_add_warning(struct request *request, struct response *response)
{
    if (!request->partial_error) {
        ingest_body_add_age_warning(request, response);
        return;
    }
    /* The message may quote bytes of the client. Control characters, which a header field must not
     * contain, are replaced. */
    const char *age = age_warning_text(request);
    char *text = arena_printf(request->arena, "%s%s%s", request->partial_error, age ? "; " : "",
                              age ? age : "");
    for (char *at = text; *at; at++)
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    response_add(request, response, "perfolio-warning", text);
}

/* Adds to the list of what was dropped, over all profiles of the request: each text once, as far as
 * it fits. */
static void add_dropped(struct request *request, struct span what)
{
    const char *dropped = request->partial_error;
    if (!what.size || (dropped && memmem(dropped, strlen(dropped), what.data, what.size)))
        return;
    if (!dropped)
        request->partial_error = arena_strndup(request->arena, what.data, what.size);
    else if (strlen(dropped) + what.size < WARNING_MAX_BYTES)
        request->partial_error =
            arena_printf(request->arena, "%s; %.*s", dropped, SPAN_PRINT(what));
}

/* Profiles are sent when they end: one without a time began its duration ago. */
static int64_t begin_of(const struct batch_source *source)
{
    const int64_t now_ns = clock_wall_ns(), own_ns = source->profile->duration_ns;
    const int64_t duration_ns = own_ns > 0 ? own_ns : source->duration_ns;
    return duration_ns > 0 && duration_ns < now_ns ? now_ns - duration_ns : now_ns;
}

enum err_code ingest_body_put(struct request *request, const struct ingest_body_profile *profile,
                              struct ingest_request *ingest_request, struct err *err)
{
    struct batch_source *source = profile->source;
    struct batch *batch;
    uint8_t id[STORE_BATCH_ID_BYTES];
    bool has_id;
    struct span names[SAMPLE_LABELS_MAX];
    const struct batch_limits label_limits = ingest_request_label_limits(ingest_request);
    const struct batch_options options = {
        .session_limits = &label_limits,
        .series_labels = names,
        .series_label_count = ingest_request_series_labels(ingest_request, names),
    };
    if (source->time_ns == 0 && batch_own_time_ns(source->profile) == 0)
        source->time_ns = begin_of(source);
    add_dropped(request, profile_string(source->profile, source->profile->warning));
    enum err_code code =
        ingest_request_check_labels(ingest_request, source->labels, source->label_count, err);
    if (!code)
        code = find_id(request, profile, id, &has_id, err);
    if (!code)
        code = batch_from_profile(source, &options, &batch, err);
    if (code) {
        profile_destroy(source->profile);
        source->profile = NULL;
        return code;
    }
    source->profile = NULL;
    if (batch->notice)
        add_dropped(request, span_text(batch->notice));
    if (batch->profile_count)
        code = ingest_request_put(ingest_request, batch, has_id ? id : NULL, err);
    batch_destroy(batch);
    return code;
}
