/*
 * share_settings: the settings of a share, read from query parameters or a JSON body and checked;
 * each error names the parameter.
 *
 *   title        up to 200 characters on one line
 *   description  up to 20,000 characters of Markdown, kept as typed
 *   visibility   public | unlisted (default) | team | password
 *   expires      never | <n>h | <n>d | <n>w, at least 1h. Without it, a tenant's shares never
 *                expire, and anonymous shares expire when they were not viewed for the time of the
 *                setting anonymous-expiry
 *   label        k=v, may be repeated up to 32 times
 *   filename     the name of a download; only its last part is kept
 *
 * The password is in the header X-Perfolio-Password, never in the address.
 */
#ifndef API_SHARE_SHARE_SETTINGS_H
#define API_SHARE_SHARE_SETTINGS_H

#include "api/share/share.h"
#include "lib/input/share_text.h"

struct json_body;

enum {
    SHARE_LABELS = 32,
    SHARE_LABEL_CHARACTERS = 256,
    SHARE_PASSWORD_MIN_BYTES = 6,
    SHARE_PASSWORD_MAX_BYTES = 256
};

/* Texts are never NULL and live in the request's arena. */
struct share_settings {
    const char *title;
    const char *description;
    const char *filename;
    const char *labels; /* JSON object */
    enum share_visibility visibility;
    struct span password;  /* empty unless SHARE_PASSWORD */
    int64_t expires_s;     /* from now; 0: never */
    int64_t idle_expiry_s; /* 0, or as in struct share */
};

/* Reads the request's query and headers; other query parameters are refused. Errors: ERR_INVALID.
 */
enum err_code share_settings_read(struct request *request, struct share_settings *ret_settings,
                                  struct err *err) MUST_USE;
/* For a share of a query's result: query, start, end and keep_label are also accepted. */
enum err_code share_settings_read_with_query(struct request *request,
                                             struct share_settings *ret_settings,
                                             struct err *err) MUST_USE;

/* Parsers of single settings, for editing. The error states what is wrong with the text. */
enum err_code share_settings_parse_visibility(struct span text, enum share_visibility *ret,
                                              struct err *err) MUST_USE;
/* Applies the rules for anonymous shares. */
enum err_code share_settings_parse_expires(const struct server *server, int64_t tenant_id,
                                           struct span text, int64_t *ret_expires_s,
                                           struct err *err) MUST_USE;
enum err_code share_settings_check_password(struct span password, struct err *err) MUST_USE;
const char *share_settings_visibility_name(enum share_visibility visibility);

#endif
