#include "api/ingest/ingest_parts.h"

#include "api/ingest/ingest_counts.h"
#include "api/ingest/sources.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct ingest_parts *ingest_parts_create(void)
{
    struct ingest_parts *parts = mem_new(struct ingest_parts, 1);
    parts->counts = ingest_counts_create(clock_monotonic_ns);
    parts->sources = sources_create();
    return parts;
}

void ingest_parts_destroy(struct ingest_parts *parts)
{
    if (!parts)
        return;
    sources_destroy(parts->sources);
    ingest_counts_destroy(parts->counts);
    mem_free(parts);
}
