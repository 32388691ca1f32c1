#include "cli/link.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"

#include <strings.h>

static bool is_base62(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z');
}

/* Whether text begins with exactly LINK_ID_LENGTH characters of an id. */
static bool starts_with_id(const char *text)
{
    size_t length = 0;
    while (length <= LINK_ID_LENGTH && is_base62(text[length]))
        length++;
    return length == LINK_ID_LENGTH;
}

static bool ends_id(char byte)
{
    return byte == 0 || byte == '/' || byte == '.' || byte == '?' || byte == '#';
}

bool link_is_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* Parses "<id>..<id>"; the text after it is ignored, but must begin as ends_id allows. */
static bool parse_pair(const char *text, struct arena *arena, struct link *link)
{
    if (!starts_with_id(text) || strncmp(text + LINK_ID_LENGTH, "..", 2) != 0)
        return false;
    const char *second = text + LINK_ID_LENGTH + 2;
    if (!starts_with_id(second) || !ends_id(second[LINK_ID_LENGTH]))
        return false;
    link->is_diff = true;
    link->a = arena_strndup(arena, text, LINK_ID_LENGTH);
    link->b = arena_strndup(arena, second, LINK_ID_LENGTH);
    return true;
}

static bool parse_single(const char *text, struct arena *arena, struct link *link)
{
    if (!starts_with_id(text) || !ends_id(text[LINK_ID_LENGTH]))
        return false;
    link->a = arena_strndup(arena, text, LINK_ID_LENGTH);
    const char *token = strstr(text + LINK_ID_LENGTH, "/delete#");
    if (token && token[8])
        link->delete_token = arena_strdup(arena, token + 8);
    return true;
}

/* Finds the first marker in the URL after which parse succeeds; link->base is the text before it.
 */
static bool parse_behind(const char *text, const char *marker, struct arena *arena,
                         bool (*parse)(const char *, struct arena *, struct link *),
                         struct link *link)
{
    const char *host = strstr(text, "://") + 3;
    for (const char *at = strstr(host, marker); at; at = strstr(at + 1, marker)) {
        if (parse(at + strlen(marker), arena, link)) {
            link->base = arena_strndup(arena, text, (size_t)(at - text));
            return true;
        }
    }
    return false;
}

bool link_parse(const char *text, struct arena *arena, struct link *ret_link)
{
    struct link link = {0};
    bool is_link = link_is_url(text)
                       ? parse_behind(text, "/p/", arena, parse_single, &link) ||
                             parse_behind(text, "/d/", arena, parse_pair, &link) ||
                             parse_behind(text, "/api/v1/shares/", arena, parse_single, &link)
                       : parse_pair(text, arena, &link) ||
                             (strlen(text) == LINK_ID_LENGTH && parse_single(text, arena, &link));
    if (is_link)
        *ret_link = link;
    return is_link;
}
