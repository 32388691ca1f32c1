/*
 * oembed: lets other sites embed a profile: GET /oembed (https://oembed.com), type rich.
 *
 * The address is that of a share's page, its short link or its page for frames; the view's
 * parameters are kept. As the specification requires, shares that not everyone may see get 401,
 * other addresses 404, formats other than JSON 501. Unknown parameters are accepted: consumers send
 * many.
 */
#ifndef API_SHARE_OEMBED_H
#define API_SHARE_OEMBED_H

#include "api/http/route.h"

enum { OEMBED_WIDTH = 960, OEMBED_HEIGHT = 600, OEMBED_MAX_SIZE = 10000 };

extern const struct route_table oembed_routes;

#endif
