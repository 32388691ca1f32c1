#include "api/core/assets.h"

#include <stdlib.h>

/* Written by api/embed.sh: rows sorted by name in byte order. */
extern const struct asset embedded_assets[];
extern const uint64_t embedded_asset_count;

struct content_type {
    const char *ending;
    const char *type;
};

static const struct content_type content_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".ttf", "font/ttf"},
    {".txt", "text/plain; charset=utf-8"},
    {".yaml", "application/yaml"},
    {".wasm", "application/wasm"},
    {".webmanifest", "application/manifest+json"},
};

static int compare_with_name(const void *key, const void *element)
{
    const struct span *name = key;
    const struct asset *asset = element;
    return span_compare(*name, span_text(asset->name));
}

const struct asset *assets_find(struct span name)
{
    return bsearch(&name, embedded_assets, embedded_asset_count, sizeof(struct asset),
                   compare_with_name);
}

const struct asset *assets_all(size_t *ret_count)
{
    *ret_count = embedded_asset_count;
    return embedded_assets;
}

const char *assets_content_type(struct span name)
{
    for (size_t i = 0; i < sizeof(content_types) / sizeof(*content_types); i++) {
        if (span_ends_with(name, content_types[i].ending))
            return content_types[i].type;
    }
    return "application/octet-stream";
}
