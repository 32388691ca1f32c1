#include "api/share/share_settings.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/request.h"
#include "api/upload/upload.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <inttypes.h>

static const char *const visibility_names[] = {
    [SHARE_PUBLIC] = "public",
    [SHARE_UNLISTED] = "unlisted",
    [SHARE_TEAM] = "team",
    [SHARE_PASSWORD] = "password",
};

static const int64_t seconds_per_hour = 3600;

const char *share_settings_visibility_name(enum share_visibility visibility)
{
    return visibility_names[visibility];
}

enum err_code share_settings_parse_visibility(struct span text, enum share_visibility *ret,
                                              struct err *err)
{
    for (size_t i = 0; i < sizeof(visibility_names) / sizeof(*visibility_names); i++) {
        if (span_equal_text(text, visibility_names[i])) {
            *ret = (enum share_visibility)i;
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_INVALID,
                   "visibility \"%.*s\" must be one of public, unlisted, team, password",
                   text.size > 40 ? 40 : (int)text.size, (const char *)text.data);
}

enum err_code share_settings_parse_expires(const struct server *server, int64_t tenant_id,
                                           struct span text, int64_t *ret_expires_s,
                                           struct err *err)
{
    bool is_anonymous = tenant_id == TENANT_ANONYMOUS;
    int64_t longest_s = is_anonymous ? server->settings->anonymous_expiry_s : 0;
    int64_t seconds = 0;
    enum err_code code = share_text_parse_expires(text, &seconds, err);
    if (code)
        return code;
    if (longest_s > 0 && (seconds == 0 || seconds > longest_s))
        return err_set(err, ERR_INVALID,
                       "expires is at most %" PRId64
                       "h for shares without an account: sign in for more",
                       longest_s / seconds_per_hour);
    *ret_expires_s = seconds;
    return ERR_NONE;
}

static enum err_code read_expires(struct request *request, struct share_settings *settings,
                                  struct err *err)
{
    struct span text;
    int64_t tenant_id = request->principal.tenant_id;
    if (request_query(request, "expires", &text))
        return share_settings_parse_expires(request->server, tenant_id, text, &settings->expires_s,
                                            err);
    if (tenant_id == TENANT_ANONYMOUS)
        settings->expires_s = settings->idle_expiry_s =
            request->server->settings->anonymous_expiry_s;
    return ERR_NONE;
}

enum err_code share_settings_check_password(struct span password, struct err *err)
{
    if (password.size < SHARE_PASSWORD_MIN_BYTES || password.size > SHARE_PASSWORD_MAX_BYTES)
        return err_set(err, ERR_INVALID,
                       "the share's password must have %d to %d bytes; it is sent in the header "
                       "X-Perfolio-Password",
                       SHARE_PASSWORD_MIN_BYTES, SHARE_PASSWORD_MAX_BYTES);
    return share_text_check("the share's password", password, SHARE_PASSWORD_MAX_BYTES, true, err);
}

static enum err_code read_visibility(struct request *request, struct share_settings *settings,
                                     struct err *err)
{
    struct span text;
    settings->visibility = SHARE_UNLISTED;
    if (request_query(request, "visibility", &text)) {
        enum err_code code = share_settings_parse_visibility(text, &settings->visibility, err);
        if (code)
            return code;
    }
    if (settings->visibility == SHARE_TEAM && request->principal.tenant_id == TENANT_ANONYMOUS)
        return err_set(
            err, ERR_UNAUTHENTICATED,
            "visibility team needs an account: sign in or send a token, or share it unlisted");
    struct span password = request_field(request, "x-perfolio-password");
    if (settings->visibility == SHARE_PASSWORD) {
        settings->password = password;
        return share_settings_check_password(password, err);
    }
    if (password.size)
        return err_set(err, ERR_INVALID,
                       "X-Perfolio-Password was sent, but visibility is %s, not password: leave it "
                       "out, or set visibility=password",
                       share_settings_visibility_name(settings->visibility));
    return ERR_NONE;
}

static enum err_code read_text(struct request *request, const char *name, size_t max_characters,
                               bool is_one_line, const char **ret_text, struct err *err)
{
    struct span text;
    *ret_text = "";
    if (!request_query(request, name, &text))
        return ERR_NONE;
    enum err_code code = share_text_check(name, text, max_characters, is_one_line, err);
    if (code)
        return code;
    *ret_text = arena_strndup(request->arena, text.data, text.size);
    return ERR_NONE;
}

static bool is_label_key(struct span key)
{
    if (key.size == 0 || key.size > 63)
        return false;
    for (size_t i = 0; i < key.size; i++) {
        uint8_t byte = key.data[i];
        bool is_letter =
            (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
        bool is_inner = (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' || byte == '/';
        if (!is_letter && !(i > 0 && is_inner))
            return false;
    }
    return true;
}

static enum err_code check_label(struct request *request, struct span label, struct span *ret_key,
                                 struct span *ret_value, struct err *err)
{
    if (!span_split(label, '=', ret_key, ret_value) || !is_label_key(*ret_key))
        return err_set(err, ERR_INVALID,
                       "label \"%.60s\" must have the form key=value, with a key of letters, "
                       "digits and _ . - /",
                       arena_strndup(request->arena, label.data, label.size));
    struct span earlier, key, value;
    for (size_t n = 0; request_query_nth(request, "label", n, &earlier); n++) {
        if (!span_split(earlier, '=', &key, &value) || !span_equal(key, *ret_key))
            continue;
        if (!span_equal(earlier, label))
            return err_set(err, ERR_INVALID, "label %.*s is given twice: give it once",
                           SPAN_PRINT(key));
    }
    return share_text_check("label", *ret_value, SHARE_LABEL_CHARACTERS, true, err);
}

static bool is_repeated(const struct request *request, struct span label, size_t n)
{
    struct span earlier;
    for (size_t i = 0; i < n && request_query_nth(request, "label", i, &earlier); i++)
        if (span_equal(earlier, label))
            return true;
    return false;
}

static enum err_code read_labels(struct request *request, struct share_settings *settings,
                                 struct err *err)
{
    buf_auto json;
    buf_init(&json, 64 * 1024);
    buf_append_byte(&json, '{');
    struct span label, key, value;
    for (size_t n = 0; request_query_nth(request, "label", n, &label); n++) {
        if (n == SHARE_LABELS)
            return err_set(err, ERR_INVALID, "label is given more than %d times: leave some out",
                           SHARE_LABELS);
        enum err_code code = check_label(request, label, &key, &value, err);
        if (code)
            return code;
        if (is_repeated(request, label, n))
            continue;
        if (json.size > 1)
            buf_append_byte(&json, ',');
        buf_append_json(&json, key);
        buf_append_byte(&json, ':');
        buf_append_json(&json, value);
    }
    buf_append_byte(&json, '}');
    if (buf_failed(&json))
        return err_set(err, ERR_INVALID,
                       "the labels together are too long: shorten them, or leave some out");
    settings->labels = arena_strndup(request->arena, json.data, json.size);
    return ERR_NONE;
}

/* known: the allowed parameters; repeatable: those that may be repeated; NULL-terminated. */
static enum err_code read_settings(struct request *request, const char *const *known,
                                   const char *const *repeatable,
                                   struct share_settings *ret_settings, struct err *err)
{
    struct share_settings settings = {0};
    const char *filename = "";
    enum err_code code = request_check_parameters(request, known, repeatable, err);
    if (code)
        return code;
    code = read_text(request, "title", SHARE_TITLE_CHARACTERS, true, &settings.title, err);
    if (code)
        return code;
    code = read_text(request, "description", SHARE_DESCRIPTION_CHARACTERS, false,
                     &settings.description, err);
    if (code)
        return code;
    code = read_text(request, "filename", UPLOAD_FILENAME_CHARACTERS, true, &filename, err);
    if (code)
        return code;
    code = read_visibility(request, &settings, err);
    if (code)
        return code;
    code = read_expires(request, &settings, err);
    if (code)
        return code;
    code = read_labels(request, &settings, err);
    if (code)
        return code;
    settings.filename = upload_base_name(request->arena, span_text(filename));
    *ret_settings = settings;
    return ERR_NONE;
}

enum err_code share_settings_read(struct request *request, struct share_settings *ret_settings,
                                  struct err *err)
{
    static const char *const known[] = {"title",   "description", "visibility",
                                        "expires", "filename",    NULL};
    static const char *const repeatable[] = {"label", NULL};
    return read_settings(request, known, repeatable, ret_settings, err);
}

enum err_code share_settings_read_with_query(struct request *request,
                                             struct share_settings *ret_settings, struct err *err)
{
    static const char *const known[] = {"title", "description", "visibility", "expires", "filename",
                                        "query", "start",       "end",        NULL};
    static const char *const repeatable[] = {"label", "keep_label", NULL};
    return read_settings(request, known, repeatable, ret_settings, err);
}
