#include "api/debuginfo/debuginfo_parts.h"

#include "api/debuginfo/debuginfo_upstreams.h"
#include "api/debuginfo/missing_symbols.h"
#include "api/debuginfo/public_tables.h"
#include "api/debuginfo/symbol_tables.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

enum err_code debuginfo_parts_create(const struct settings *settings,
                                     struct debuginfo_parts **ret_parts, struct err *err)
{
    struct debuginfod_client *client = NULL;
    enum err_code code = debuginfo_upstreams_open(settings, &client, err);
    if (code)
        return code;
    struct debuginfo_parts *parts = mem_new(struct debuginfo_parts, 1);
    parts->client = client;
    parts->symbol_tables = symbol_tables_create();
    parts->missing_symbols = missing_symbols_create();
    parts->public_tables = public_tables_create(clock_monotonic_ns);
    *ret_parts = parts;
    return ERR_NONE;
}

void debuginfo_parts_destroy(struct debuginfo_parts *parts)
{
    if (!parts)
        return;
    debuginfod_client_destroy(parts->client);
    symbol_tables_destroy(parts->symbol_tables);
    public_tables_destroy(parts->public_tables);
    missing_symbols_destroy(parts->missing_symbols);
    mem_free(parts);
}
