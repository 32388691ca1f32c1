/*
 * assets: files embedded into the executable (api/embed.sh adds them at build time).
 *
 * Names are "web/<path below web/dist>", "migrations/<file>.sql", "openapi.yaml" and
 * "DejaVuSans.ttf". The bytes live as long as the process. Threads: any, read-only.
 */
#ifndef API_CORE_ASSETS_H
#define API_CORE_ASSETS_H

#include "lib/base/buf.h"

struct asset {
    const char *name;
    struct span bytes;
};

/* NULL if no asset has that name. */
const struct asset *assets_find(struct span name);
/* All assets, in byte order of their names; *ret_count is never 0. */
const struct asset *assets_all(size_t *ret_count);

/* The media type for the extension of the name; "application/octet-stream" if unknown. */
const char *assets_content_type(struct span name);

#endif
