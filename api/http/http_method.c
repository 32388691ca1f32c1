#include "api/http/http_method.h"

enum { METHOD_COUNT = HTTP_OPTIONS + 1 };

static const char *const method_names[METHOD_COUNT] = {
    [HTTP_GET] = "GET",         [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",
    [HTTP_PUT] = "PUT",         [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
    [HTTP_OPTIONS] = "OPTIONS",
};

const char *http_method_name(enum http_method method)
{
    return (unsigned)method < METHOD_COUNT ? method_names[method] : "?";
}

bool http_method_parse(struct span name, enum http_method *ret_method)
{
    for (int method = 0; method < METHOD_COUNT; method++) {
        if (span_equal_text(name, method_names[method])) {
            *ret_method = (enum http_method)method;
            return true;
        }
    }
    return false;
}
