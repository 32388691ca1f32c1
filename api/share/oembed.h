/*
 * oembed: how other sites embed a profile: GET /oembed (https://oembed.com), type rich.
 *
 * The address is that of a share's page, its short link or its page for frames; the view's
 * parameters come along. What not everybody may see answers 401, other addresses 404, formats but
 * JSON 501, as the specification has it. Unknown parameters are taken: consumers send many.
 */
#ifndef API_SHARE_OEMBED_H
#define API_SHARE_OEMBED_H

#include "api/http/route.h"

enum { OEMBED_WIDTH = 960, OEMBED_HEIGHT = 600, OEMBED_MAX_SIZE = 10000 };

extern const struct route_table oembed_routes;

#endif
