#include "lib/profile/formats/json_tree.h"

#include "lib/base/err.h"
#include "lib/profile/formats/json_scan.h"
#include "lib/profile/profile.h"

enum err_code json_tree_load(struct span text, const struct profile_limits *limits,
                             const char *format, json_t **ret_root, struct err *err)
{
    enum err_code code = json_scan_check(text, profile_limits_resolve(limits).json_bytes, err);
    if (code)
        return code;
    if (!span_trim(text).size)
        return err_set(err, ERR_INVALID, "%s: line 1, column 1: the text is empty; send JSON",
                       format);
    json_error_t error;
    *ret_root = json_loadb((const char *)text.data, text.size, JSON_ALLOW_NUL, &error);
    if (*ret_root)
        return ERR_NONE;
    json_scan_trim(text);
    return err_set(err, ERR_INVALID, "%s: line %d, column %d: %s", format, error.line, error.column,
                   error.text);
}

void json_tree_free(json_t *root, struct span text)
{
    json_decref(root);
    json_scan_trim(text);
}

struct span json_tree_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value))
        return span_of(NULL, 0);
    return span_of(json_string_value(value), json_string_length(value));
}
