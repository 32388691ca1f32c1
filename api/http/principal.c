#include "api/http/principal.h"

static const struct {
    const char *name;
    unsigned scope;
} scope_names[] = {
    {"ingest", SCOPE_INGEST},       {"read", SCOPE_READ},   {"share", SCOPE_SHARE},
    {"debuginfo", SCOPE_DEBUGINFO}, {"admin", SCOPE_ADMIN}, {"operator", SCOPE_OPERATOR},
};
enum { SCOPE_COUNT = sizeof(scope_names) / sizeof(scope_names[0]) };

unsigned principal_parse_scope(struct span name)
{
    for (int i = 0; i < SCOPE_COUNT; i++)
        if (span_equal_text(name, scope_names[i].name))
            return scope_names[i].scope;
    return 0;
}

void principal_append_scopes(struct buf *buf, unsigned scopes)
{
    const char *separator = "";
    buf_append_text(buf, "[");
    for (int i = 0; i < SCOPE_COUNT; i++) {
        if (!(scopes & scope_names[i].scope))
            continue;
        buf_printf(buf, "%s\"%s\"", separator, scope_names[i].name);
        separator = ",";
    }
    buf_append_text(buf, "]");
}

const char *principal_first_scope(unsigned scopes)
{
    for (int i = 0; i < SCOPE_COUNT; i++)
        if (scopes & scope_names[i].scope)
            return scope_names[i].name;
    return NULL;
}
