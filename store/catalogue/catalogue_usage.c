/* Usage that a flush adds to its tenants: one statement, sent together with the flush's own. */
#include "store/catalogue/catalogue.h"

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

enum { LIST_MAX_BYTES = 64 << 20, SLOT_COUNT = 16 };

struct sums {
    struct buf tenants;
    struct buf batches;
    struct buf profiles;
    struct buf samples;
    struct buf bytes;
    struct buf cut_strings;
    struct buf series_tenants;
    struct buf series;
};

/* Appends the sums of one tenant's parts. */
static void append_sums(struct sums *sums, const struct catalogue_part *parts, uint32_t count)
{
    uint64_t batches = 0, profiles = 0, samples = 0, bytes = 0, cut_strings = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct catalogue_part *part = &parts[i];
        if (part->state != CATALOGUE_NEW)
            continue;
        batches++;
        profiles += part->profile_count;
        samples += part->row_count;
        bytes += part->bytes;
        cut_strings += part->cut_string_count;
        for (uint32_t j = 0; j < part->series_count; j++) {
            catalogue_append_number(&sums->series_tenants, part->tenant_id);
            catalogue_append_number(&sums->series, (int64_t)part->series[j]);
        }
    }
    if (!batches)
        return;
    catalogue_append_number(&sums->tenants, parts[0].tenant_id);
    catalogue_append_number(&sums->batches, (int64_t)batches);
    catalogue_append_number(&sums->profiles, (int64_t)profiles);
    catalogue_append_number(&sums->samples, (int64_t)samples);
    catalogue_append_number(&sums->bytes, (int64_t)bytes);
    catalogue_append_number(&sums->cut_strings, (int64_t)cut_strings);
}

/* All servers lock rows in one order: series, then sums, each by tenant. */
static enum err_code queue_usage_sums(struct pg_connection *connection, struct arena *arena,
                                      int64_t writer_id, int32_t day, struct sums *sums,
                                      struct err *err)
{
    return pg_queue_values(
        connection, PG_NO_TENANT,
        "WITH seen AS ("
        "    INSERT INTO ingest_series (tenant_id, day, series) "
        "    SELECT tenant, DATE '1970-01-01' + $1::integer, series "
        "    FROM unnest($2::bigint[], $3::bigint[]) AS t (tenant, series) ORDER BY 1, 3 "
        "    ON CONFLICT DO NOTHING RETURNING tenant_id), "
        "new AS (SELECT tenant_id, count(*) AS count FROM seen GROUP BY tenant_id) "
        "INSERT INTO ingest_usage AS u (tenant_id, day, slot, batches, profiles, samples, bytes, "
        "                               cut_strings, series) "
        "SELECT t.tenant, DATE '1970-01-01' + $1::integer, $4::smallint, t.batches, t.profiles, "
        "       t.samples, t.bytes, t.cut_strings, coalesce(new.count, 0) "
        "FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], "
        "            $10::bigint[]) "
        "     AS t (tenant, batches, profiles, samples, bytes, cut_strings) "
        "LEFT JOIN new ON new.tenant_id = t.tenant ORDER BY t.tenant "
        "ON CONFLICT (tenant_id, day, slot) DO UPDATE SET "
        "    batches = u.batches + excluded.batches, profiles = u.profiles + excluded.profiles, "
        "    samples = u.samples + excluded.samples, bytes = u.bytes + excluded.bytes, "
        "    cut_strings = u.cut_strings + excluded.cut_strings, "
        "    series = u.series + excluded.series",
        arena, err, PG_I64(day), PG_TEXT(catalogue_end_list(arena, &sums->series_tenants)),
        PG_TEXT(catalogue_end_list(arena, &sums->series)), PG_I64(writer_id % SLOT_COUNT),
        PG_TEXT(catalogue_end_list(arena, &sums->tenants)),
        PG_TEXT(catalogue_end_list(arena, &sums->batches)),
        PG_TEXT(catalogue_end_list(arena, &sums->profiles)),
        PG_TEXT(catalogue_end_list(arena, &sums->samples)),
        PG_TEXT(catalogue_end_list(arena, &sums->bytes)),
        PG_TEXT(catalogue_end_list(arena, &sums->cut_strings)));
}

enum err_code catalogue_queue_usage(struct pg_connection *connection, struct arena *arena,
                                    int64_t writer_id, int32_t day,
                                    const struct catalogue_part *parts, uint32_t count,
                                    struct err *err)
{
    struct sums sums;
    struct buf *const lists[] = {&sums.tenants,        &sums.batches, &sums.profiles,
                                 &sums.samples,        &sums.bytes,   &sums.cut_strings,
                                 &sums.series_tenants, &sums.series};
    const size_t list_count = sizeof(lists) / sizeof(lists[0]);
    for (size_t i = 0; i < list_count; i++)
        buf_init(lists[i], LIST_MAX_BYTES);
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i;
        while (end < count && parts[end].tenant_id == parts[i].tenant_id)
            end++;
        append_sums(&sums, parts + i, end - i);
        i = end;
    }
    enum err_code code = ERR_NONE;
    if (sums.tenants.size)
        code = queue_usage_sums(connection, arena, writer_id, day, &sums, err);
    for (size_t i = 0; i < list_count; i++)
        buf_fini(lists[i]);
    return code;
}
