#include "api/http/json_body.h"

#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

struct json_body {
    json_t *object;
    struct arena *arena;
};

static void unref_document(void *object)
{
    json_decref(object);
}

static enum err_code check_fields(const json_t *object, const char *const *known, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const char *const *at = known;
        while (*at && strcmp(*at, name) != 0)
            at++;
        if (!*at)
            return err_set(err, ERR_INVALID, "The field \"%.60s\" is not known here: leave it out",
                           name);
    }
    return ERR_NONE;
}

enum err_code json_body_parse(struct request *request, const char *const *known,
                              struct json_body **ret_body, struct err *err)
{
    json_error_t error;
    struct span text = request->body.size ? request->body : SPAN_LITERAL("{}");
    json_t *document =
        json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        return err_set(err, ERR_INVALID, "The body is not JSON: line %d, column %d: %s", error.line,
                       error.column, error.text);
    arena_on_destroy(request->arena, unref_document, document);
    if (!json_is_object(document))
        return err_set(err, ERR_INVALID, "The body must be a JSON object");
    enum err_code code = check_fields(document, known, err);
    if (code)
        return code;
    struct json_body *body = arena_new(request->arena, struct json_body, 1);
    *body = (struct json_body){.object = document, .arena = request->arena};
    *ret_body = body;
    return ERR_NONE;
}

bool json_body_has(const struct json_body *body, const char *name)
{
    return json_object_get(body->object, name) != NULL;
}

bool json_body_is_null(const struct json_body *body, const char *name)
{
    return json_is_null(json_object_get(body->object, name));
}

/* The value; NULL if absent or null. */
static const json_t *get_value(const struct json_body *body, const char *name)
{
    const json_t *value = json_object_get(body->object, name);
    return json_is_null(value) ? NULL : value;
}

enum err_code json_body_text(const struct json_body *body, const char *name, size_t min_bytes,
                             size_t max_bytes, const char **ret_text, struct err *err)
{
    const json_t *value = get_value(body, name);
    if (!value && min_bytes == 0) {
        *ret_text = NULL;
        return ERR_NONE;
    }
    if (!json_is_string(value))
        return err_set(err, ERR_INVALID, "The field \"%s\" must be a text", name);
    size_t size = json_string_length(value);
    if (size < min_bytes)
        return err_set(err, ERR_INVALID, "The field \"%s\" needs at least %zu characters", name,
                       min_bytes);
    if (size > max_bytes)
        return err_set(err, ERR_INVALID, "The field \"%s\" is longer than %zu bytes", name,
                       max_bytes);
    *ret_text = json_string_value(value);
    return ERR_NONE;
}

enum err_code json_body_i64(const struct json_body *body, const char *name, int64_t low,
                            int64_t high, int64_t fallback, int64_t *ret_number, struct err *err)
{
    const json_t *value = get_value(body, name);
    if (!value) {
        *ret_number = fallback;
        return ERR_NONE;
    }
    if (!json_is_integer(value))
        return err_set(err, ERR_INVALID, "The field \"%s\" must be a whole number", name);
    int64_t number = json_integer_value(value);
    if (number < low || number > high)
        return err_set(err, ERR_INVALID,
                       "The field \"%s\" must be between %" PRId64 " and %" PRId64, name, low,
                       high);
    *ret_number = number;
    return ERR_NONE;
}

enum err_code json_body_bool(const struct json_body *body, const char *name, bool fallback,
                             bool *ret_value, struct err *err)
{
    const json_t *value = get_value(body, name);
    if (value && !json_is_boolean(value))
        return err_set(err, ERR_INVALID, "The field \"%s\" must be true or false", name);
    *ret_value = value ? json_is_true(value) : fallback;
    return ERR_NONE;
}

enum err_code json_body_texts(const struct json_body *body, const char *name, size_t max_count,
                              const char *const **ret_texts, size_t *ret_count, struct err *err)
{
    const json_t *value = get_value(body, name);
    size_t count = json_array_size(value);
    if (value && !json_is_array(value))
        return err_set(err, ERR_INVALID, "The field \"%s\" must be an array of texts", name);
    if (count > max_count)
        return err_set(err, ERR_INVALID, "The field \"%s\" has more than %zu texts", name,
                       max_count);
    const char **texts = arena_new(body->arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        texts[i] = json_string_value(json_array_get(value, i));
        if (!texts[i])
            return err_set(err, ERR_INVALID, "The field \"%s\" must be an array of texts", name);
    }
    *ret_texts = texts;
    *ret_count = count;
    return ERR_NONE;
}

enum err_code json_body_objects(const struct json_body *body, const char *name, size_t max_count,
                                const char *const *known, struct json_body *const **ret_objects,
                                size_t *ret_count, struct err *err)
{
    const json_t *value = get_value(body, name);
    size_t count = json_array_size(value);
    enum err_code code = ERR_NONE;
    if (value && !json_is_array(value))
        return err_set(err, ERR_INVALID, "The field \"%s\" must be an array of objects", name);
    if (count > max_count)
        return err_set(err, ERR_INVALID, "The field \"%s\" has more than %zu objects", name,
                       max_count);
    struct json_body **objects = arena_new(body->arena, struct json_body *, count);
    for (size_t i = 0; !code && i < count; i++) {
        json_t *object = json_array_get(value, i);
        if (!json_is_object(object))
            return err_set(err, ERR_INVALID, "The field \"%s\" must be an array of objects", name);
        code = check_fields(object, known, err);
        objects[i] = arena_new(body->arena, struct json_body, 1);
        *objects[i] = (struct json_body){.object = object, .arena = body->arena};
    }
    *ret_objects = objects;
    *ret_count = count;
    return code;
}
