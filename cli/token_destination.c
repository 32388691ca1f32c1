#include "cli/token_destination.h"

#include "lib/base/span.h"

#include <string.h>
#include <strings.h>

bool token_destination_is_confidential(const char *url)
{
    static const char *const local[] = {"http://localhost", "http://127.0.0.1", "http://[::1]"};
    if (strncasecmp(url, "https://", 8) == 0)
        return true;
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        size_t length = strlen(local[i]);
        if (strncasecmp(url, local[i], length) == 0 && strchr(":/", url[length])) /* or the end */
            return true;
    }
    return false;
}

/* The parts of "https://host:port/prefix"; the host may be in brackets. */
struct base_parts {
    struct span scheme; /* with "://" */
    struct span host;
    struct span rest; /* ":port/prefix" without "/" at its end */
};

static struct base_parts split_base(const char *base)
{
    const char *colon = strstr(base, "://");
    const char *host = colon ? colon + 3 : base;
    const size_t host_bytes =
        *host == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL) : strcspn(host, ":/");
    struct base_parts parts = {.scheme = span_of(base, (size_t)(host - base)),
                               .host = span_of(host, host_bytes),
                               .rest = span_text(host + host_bytes)};
    while (parts.rest.size && parts.rest.data[parts.rest.size - 1] == '/')
        parts.rest.size--;
    return parts;
}

static bool is_same_text(struct span a, struct span b)
{
    return a.size == b.size &&
           (a.size == 0 || strncasecmp((const char *)a.data, (const char *)b.data, a.size) == 0);
}

static bool is_this_machine(struct span host)
{
    return is_same_text(host, SPAN_LITERAL("localhost")) || span_equal_text(host, "127.0.0.1") ||
           span_equal_text(host, "[::1]");
}

/* Ignores case, as host names and schemes do. Path prefixes that differ only in case are rare, and
 * treating them as equal never sends a token to another host. */
bool token_destination_is_same(const char *base, const char *other_base)
{
    const struct base_parts a = split_base(base), b = split_base(other_base);
    return is_same_text(a.scheme, b.scheme) && is_same_text(a.rest, b.rest) &&
           (is_same_text(a.host, b.host) || (is_this_machine(a.host) && is_this_machine(b.host)));
}
