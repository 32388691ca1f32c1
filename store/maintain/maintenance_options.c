#include "store/maintain/maintenance_options.h"

#include "lib/io/pg.h"

enum { MAX_OPEN_BYTES = 512 << 20 }; /* default of max_open_bytes */

struct reachability maintenance_options_reachability(const struct maintenance_options *options)
{
    return (struct reachability){
        .database = options->jobs_database, .tenant_id = PG_NO_TENANT, .objects = options->objects};
}

bool maintenance_options_has_space(const struct maintenance_options *options, bool is_needed)
{
    return !options->has_space || options->has_space(options->has_space_context, is_needed);
}

size_t maintenance_options_open_bytes(const struct maintenance_options *options)
{
    return options->max_open_bytes ? options->max_open_bytes : (size_t)MAX_OPEN_BYTES;
}
