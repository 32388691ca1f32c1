#include "api/query/query_share.h"

#include "api/identity/auth.h"
#include "api/identity/idempotency.h"
#include "api/identity/quota.h"
#include "api/query/query.h"
#include "api/query/query_fields.h"
#include "api/query/query_title.h"
#include "api/share/share_settings.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/label_filter.h"
#include "store/store.h"

#include <inttypes.h>

enum { COMMENTS_MAX = 5, BYTES_MAX = 1 << 30 };

static const char *describe_window(struct arena *arena, const struct store_query *query)
{
    char start[CLOCK_TEXT_BYTES], end[CLOCK_TEXT_BYTES];
    return arena_printf(arena, "%s to %s", clock_format(query->start_ns, start),
                        clock_format(query->end_ns, end));
}

/* Comments in the profile that state its origin, for people who download it. */
static void add_comments(struct arena *arena, const struct store_query *query,
                         const struct store_result *result)
{
    uint32_t count = 0;
    struct span comments[COMMENTS_MAX];
    const char *const texts[] = {
        arena_printf(arena, "query: %.*s", SPAN_PRINT(query->selectors[0])),
        arena_printf(arena, "window: %s (%" PRId64 " <= time_nanos < %" PRId64 ")",
                     describe_window(arena, query), query->start_ns, query->end_ns),
        arena_printf(arena, "profile type: %s", result->type),
        arena_printf(arena, "rule: %s", store_aggregation_name(result->aggregation)),
        query_fields_describe_missing(arena, &result->statistics),
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (texts[i])
            comments[count++] = span_text(texts[i]);
    profile_add_comments(result->own_profile, comments, count);
}

static enum err_code pack_profile(const struct profile *profile, struct buf *packed,
                                  struct err *err)
{
    buf_auto message;
    buf_init(&message, BYTES_MAX);
    enum err_code code = pprof_encode(profile, &message, err);
    return code ? code : compress_gzip(buf_span(&message), COMPRESS_GZIP_DEFAULT, packed, err);
}

/* keep_label, which may be repeated: labels that the share's samples keep; "*": all of them. */
static enum err_code read_kept_labels(const struct request *request, struct store_query *query,
                                      struct err *err)
{
    struct span *names = arena_new(request->arena, struct span, LABEL_RULES_MAX);
    struct span name;
    query->label_names = names;
    for (size_t i = 0; request_query_nth(request, "keep_label", i, &name); i++) {
        if (span_equal_text(name, "*")) {
            query->wants_all_labels = true;
            continue;
        }
        if (!name.size)
            return err_set(err, ERR_INVALID, "keep_label must be a label's name, or * for all");
        if (query->label_name_count == LABEL_RULES_MAX)
            return err_set(err, ERR_INVALID, "keep_label is given more than %d times",
                           LABEL_RULES_MAX);
        names[query->label_name_count++] = name;
    }
    return ERR_NONE;
}

/* The result's profile is freed when this returns: decoding the packed bytes needs the memory.
 * *ret_title is in the request's arena. */
static enum err_code merge_and_pack(struct request *request, struct response *response,
                                    struct buf *packed, const char **ret_title, struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct store_query query;
    struct store_result result;
    enum err_code code = query_read(request, &query_parameters, NULL, &query, err);
    if (!code)
        code = read_kept_labels(request, &query, err);
    query.wants_own_profile = true;
    if (code)
        return code;
    code = query_merge(request, &query, &result, err);
    if (code)
        return code;
    if (result.absent_label) {
        code = query_fields_refuse_label(request->arena, "keep_label", &result, err);
    } else if (result.profile->sample_count) {
        add_comments(request->arena, &query, &result);
        query_fields_add(request, response, &result, begin_ns);
        *ret_title = query_title(request->arena, span_text(result.type), query.selectors[0],
                                 query.start_ns, query.end_ns);
        code = pack_profile(result.profile, packed, err);
    } else {
        const char *missing = query_fields_describe_missing(request->arena, &result.statistics);
        code = err_set(err, ERR_INVALID,
                       "query: it finds no sample from %s, so there is nothing to share: select "
                       "other labels or another time%s%s",
                       describe_window(request->arena, &query), missing ? "; " : "",
                       missing ? missing : "");
    }
    store_result_fini(&result);
    return code;
}

static enum err_code make_share(struct request *request, struct share_settings *settings,
                                struct idempotency *idempotency, struct response *response,
                                struct err *err)
{
    const char *title = "";
    buf_auto packed;
    buf_init(&packed, BYTES_MAX);
    enum err_code code = merge_and_pack(request, response, &packed, &title, err);
    if (code)
        return code;
    code = quota_take_upload(request, packed.size, err);
    if (code)
        return code;
    if (!*settings->filename)
        settings->filename = "query.pb.gz";
    if (!*settings->title)
        settings->title = title;
    return share_create_once(request, settings, buf_span(&packed), idempotency, response, err);
}

static enum err_code share_query(struct request *request, struct response *response,
                                 struct err *err)
{
    struct share_settings settings;
    struct idempotency idempotency;
    enum err_code code = auth_check_scopes(request, SCOPE_READ | SCOPE_SHARE, err);
    if (code)
        return code;
    code = share_settings_read_with_query(request, &settings, err);
    if (code)
        return code;
    if (request->body.size)
        code = err_set(err, ERR_INVALID,
                       "query replaces the profile: leave out the body, or the query");
    if (code)
        return code;
    code = idempotency_find(request, &idempotency, err);
    if (code)
        return code;
    if (idempotency.is_known)
        return share_create_respond_again(request, idempotency.id, idempotency.secret, response,
                                          err);
    return make_share(request, &settings, &idempotency, response, err);
}

static enum err_code create_share(struct request *request, struct response *response,
                                  struct err *err)
{
    struct span text;
    return request_query(request, "query", &text) ? share_query(request, response, err)
                                                  : share_routes_create(request, response, err);
}

/* Larger profiles are sent in parts (api/upload/upload.h). */
static const struct route routes[] = {
    {HTTP_POST, "/api/v1/shares", ACCESS_ANONYMOUS, SCOPE_SHARE, ROUTE_STORES, HTTP_MAX_BODY_BYTES,
     create_share},
};

const struct route_table query_share_routes = {routes, sizeof(routes) / sizeof(*routes)};
