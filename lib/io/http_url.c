#include "lib/io/http_url.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <ctype.h>
#include <curl/curl.h>
#include <string.h>

static void url_cleanup(CURLU **parts)
{
    curl_url_cleanup(*parts);
}

#define curlu_auto __attribute__((cleanup(url_cleanup))) CURLU *

/* NULL when the URL has no such part. */
static char *take_part(struct arena *arena, CURLU *parts, CURLUPart what, unsigned flags)
{
    char *found = NULL;
    if (curl_url_get(parts, what, &found, flags))
        return NULL;
    char *copy = arena_strdup(arena, found);
    curl_free(found);
    return copy;
}

/* "[::1]" as "::1", a name in lower case and without the dot that may end it. */
static const char *clean_host(struct arena *arena, char *host)
{
    size_t size = strlen(host);
    if (host[0] == '[' && size > 2)
        return arena_strndup(arena, host + 1, size - 2);
    for (char *at = host; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    if (size > 1 && host[size - 1] == '.')
        host[size - 1] = '\0';
    return host;
}

static enum err_code take_parts(struct arena *arena, CURLU *parts, struct http_url *ret_url,
                                struct err *err)
{
    curl_url_set(parts, CURLUPART_FRAGMENT, NULL, 0);
    char *host = take_part(arena, parts, CURLUPART_HOST, 0);
    struct http_url url = {
        .text = take_part(arena, parts, CURLUPART_URL, 0),
        .scheme = take_part(arena, parts, CURLUPART_SCHEME, 0),
        .port = take_part(arena, parts, CURLUPART_PORT, CURLU_DEFAULT_PORT),
        .path = take_part(arena, parts, CURLUPART_PATH, 0),
        .has_query = take_part(arena, parts, CURLUPART_QUERY, 0) != NULL,
    };
    if (!host || !url.text || !url.scheme || !url.port || !url.path)
        return err_set(err, ERR_INVALID, "not a whole URL");
    if (strcmp(url.scheme, "https") != 0 && strcmp(url.scheme, "http") != 0)
        return err_set(err, ERR_INVALID, "the URL has the scheme %.20s: use https", url.scheme);
    if (take_part(arena, parts, CURLUPART_USER, 0) ||
        take_part(arena, parts, CURLUPART_PASSWORD, 0))
        return err_set(err, ERR_INVALID, "a URL with a user's name or password in it");
    url.host = clean_host(arena, host);
    *ret_url = url;
    return ERR_NONE;
}

enum err_code http_url_read(struct arena *arena, const char *text, struct http_url *ret_url,
                            struct err *err)
{
    curlu_auto parts = curl_url();
    CURLUcode result = parts ? curl_url_set(parts, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME)
                             : CURLUE_OUT_OF_MEMORY;
    if (result)
        return err_set(err, ERR_INVALID, "not a usable URL: %s", curl_url_strerror(result));
    return take_parts(arena, parts, ret_url, err);
}

enum err_code http_url_follow(struct arena *arena, const struct http_url *base,
                              const char *location, struct http_url *ret_url, struct err *err)
{
    curlu_auto parts = curl_url();
    CURLUcode result =
        parts ? curl_url_set(parts, CURLUPART_URL, base->text, 0) : CURLUE_OUT_OF_MEMORY;
    if (!result)
        result = curl_url_set(parts, CURLUPART_URL, location, CURLU_NON_SUPPORT_SCHEME);
    if (result)
        return err_set(err, ERR_INVALID, "not a usable URL: %s", curl_url_strerror(result));
    return take_parts(arena, parts, ret_url, err);
}

bool http_url_same_origin(const struct http_url *a, const struct http_url *b)
{
    return strcmp(a->scheme, b->scheme) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->port, b->port) == 0;
}
