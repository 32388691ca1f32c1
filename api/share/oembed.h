/*
 * oembed: lets other sites embed a profile: GET /oembed (https://oembed.com), type rich.
 *
 * The parameter url is the address of a share's page, of its page for frames or of a short link;
 * the parameters of the view in it are kept. As the specification requires, the response is 401 for
 * a share that not everyone may see, 404 for other addresses, 501 for formats other than JSON.
 * Unknown parameters are accepted, because consumers send many.
 */
#ifndef API_SHARE_OEMBED_H
#define API_SHARE_OEMBED_H

#include "api/http/route.h"

enum { OEMBED_WIDTH = 960, OEMBED_HEIGHT = 600, OEMBED_MAX_SIZE = 10000 };

extern const struct route_table oembed_routes;

#endif
