#include "api/server/route_match.h"

#include "lib/base/err.h"

#include <string.h>

enum { METHOD_COUNT = HTTP_OPTIONS + 1 };

/* The position of literal in text: at its end if must_end, otherwise the first one after one byte.
 */
static const uint8_t *find_literal(struct span text, const char *literal, size_t literal_size,
                                   bool must_end)
{
    if (text.size <= literal_size)
        return NULL;
    if (must_end) {
        const uint8_t *at = text.data + text.size - literal_size;
        return literal_size == 0 || memcmp(at, literal, literal_size) == 0 ? at : NULL;
    }
    return memmem(text.data + 1, text.size - 1, literal, literal_size);
}

static size_t segment_size(const uint8_t *text, size_t size)
{
    const uint8_t *slash = memchr(text, '/', size);
    return slash ? (size_t)(slash - text) : size;
}

/* Matches one {…} at *pattern with the start of *path; advances both. */
static bool match_param(const char **pattern, struct span *path, struct span *ret_param)
{
    const char *literal = strchr(*pattern, '}') + 1;
    size_t literal_size = strcspn(literal, "{/");
    struct span segment = span_of(path->data, segment_size(path->data, path->size));
    const uint8_t *end = find_literal(segment, literal, literal_size, literal[literal_size] != '{');
    if (!end)
        return false;
    *ret_param = span_of(path->data, (size_t)(end - path->data));
    size_t used = ret_param->size + literal_size;
    *path = span_of(path->data + used, path->size - used);
    *pattern = literal + literal_size;
    return true;
}

static bool match_pattern(const char *pattern, struct span path,
                          struct span params[REQUEST_MAX_PATH_PARAMS])
{
    size_t param_count = 0;
    while (*pattern) {
        if (*pattern == '{') {
            if (param_count == REQUEST_MAX_PATH_PARAMS || path.size == 0 ||
                !match_param(&pattern, &path, &params[param_count]))
                return false;
            param_count++;
        } else {
            if (path.size == 0 || path.data[0] != (uint8_t)*pattern)
                return false;
            pattern++;
            path = span_of(path.data + 1, path.size - 1);
        }
    }
    for (; param_count < REQUEST_MAX_PATH_PARAMS && path.size == 0; param_count++)
        params[param_count] = (struct span){0};
    return path.size == 0;
}

enum err_code route_match(const struct route_list *list, enum http_method method, struct span path,
                          struct span ret_params[REQUEST_MAX_PATH_PARAMS],
                          const struct route **ret_route, struct err *err)
{
    bool is_known_path = false;
    if (method == HTTP_HEAD)
        method = HTTP_GET;
    for (size_t table = 0; table < list->table_count; table++) {
        for (size_t i = 0; i < list->tables[table]->route_count; i++) {
            const struct route *route = &list->tables[table]->routes[i];
            struct span params[REQUEST_MAX_PATH_PARAMS];
            if (!match_pattern(route->pattern, path, params))
                continue;
            is_known_path = true;
            if (route->method != method)
                continue;
            memcpy(ret_params, params, sizeof(params));
            *ret_route = route;
            return ERR_NONE;
        }
    }
    if (is_known_path)
        return err_set(err, ERR_UNSUPPORTED,
                       "this address does not support the method %s; use one of those in the "
                       "field Allow of this response",
                       http_method_name(method));
    return err_set(err, ERR_NOT_FOUND,
                   "there is nothing at this address; /api/openapi.yaml lists what there is");
}

void route_match_methods(const struct route_list *list, struct span path, struct buf *buf)
{
    bool is_allowed[METHOD_COUNT] = {false};
    struct span params[REQUEST_MAX_PATH_PARAMS];
    for (size_t table = 0; table < list->table_count; table++) {
        for (size_t i = 0; i < list->tables[table]->route_count; i++) {
            const struct route *route = &list->tables[table]->routes[i];
            if (match_pattern(route->pattern, path, params))
                is_allowed[route->method] = true;
        }
    }
    is_allowed[HTTP_HEAD] |= is_allowed[HTTP_GET];
    const char *separator = "";
    for (int method = 0; method < METHOD_COUNT; method++) {
        if (!is_allowed[method])
            continue;
        buf_printf(buf, "%s%s", separator, http_method_name((enum http_method)method));
        separator = ", ";
    }
}
