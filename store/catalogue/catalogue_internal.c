#include "store/catalogue/catalogue_internal.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>

enum { LIST_MAX_BYTES = 64 << 20 }; /* of ids as text */

/* ---- arrays ---- */

void catalogue_append_number(struct buf *list, int64_t number)
{
    buf_append_byte(list, list->size ? ',' : '{');
    buf_printf(list, "%" PRId64, number);
}

const char *catalogue_end_list(struct arena *arena, struct buf *list)
{
    if (!list->size)
        buf_append_byte(list, '{');
    buf_append_byte(list, '}');
    return arena_strndup(arena, list->data, list->size);
}

const char *catalogue_id_list(struct arena *arena, const struct catalogue_claim *claim)
{
    buf_auto list;
    buf_init(&list, LIST_MAX_BYTES);
    for (uint32_t i = 0; i < claim->id_count; i++)
        catalogue_append_number(&list, claim->ids[i]);
    return catalogue_end_list(arena, &list);
}

void catalogue_read_ids(struct arena *arena, const struct pg_result *result, int row, int column,
                        struct deletion_set_ids *ret_ids)
{
    struct span rest = span_text(pg_get_text(result, row, column)), item;
    *ret_ids = (struct deletion_set_ids){0};
    if (rest.size <= 2)
        return;
    rest = span_of(rest.data + 1, rest.size - 2); /* "{100,200}" */
    int64_t *ids = arena_new(arena, int64_t, rest.size / 2 + 1);
    ret_ids->ids = ids;
    uint64_t id;
    for (bool has_more = true; has_more;) {
        has_more = span_split(rest, ',', &item, &rest);
        if (span_parse_u64(item, &id))
            ids[ret_ids->count++] = (int64_t)id;
    }
}

/* ---- rows as places ---- */

/* One place, or as many as the array in column `lengths` has numbers. */
static uint32_t count_places(const struct pg_result *result, int row, int lengths)
{
    uint32_t count = 1;
    for (const char *at = pg_get_text(result, row, lengths); *at; at++)
        count += *at == ',';
    return count;
}

static uint32_t read_places(struct arena *arena, const struct pg_result *result, int row, int first,
                            struct catalogue_place *places)
{
    struct catalogue_place place = {
        .object_key = pg_get_text(result, row, first),
        .offset = (uint64_t)pg_get_i64(result, row, first + 1),
        .level = (uint32_t)pg_get_i64(result, row, first + 3),
    };
    struct span rest = span_text(pg_get_text(result, row, first + 2)), item;
    struct deletion_set_ids crcs;
    catalogue_read_ids(arena, result, row, first + 4, &place.deletions);
    catalogue_read_ids(arena, result, row, first + 5, &crcs);
    if (pg_is_null(result, row, first + 2) || rest.size < 2) {
        place.footer_crc = crcs.count ? (uint32_t)crcs.ids[0] : 0;
        places[0] = place;
        return 1;
    }
    rest = span_of(rest.data + 1, rest.size - 2); /* "{100,200}" */
    uint32_t count = 0;
    bool has_more = true;
    while (has_more) {
        has_more = span_split(rest, ',', &item, &rest);
        if (!span_parse_u64(item, &place.bytes))
            return count;
        place.footer_crc = count < crcs.count ? (uint32_t)crcs.ids[count] : 0;
        places[count++] = place;
        place.offset += place.bytes;
    }
    return count;
}

struct catalogue_place *catalogue_read_places(struct arena *arena, const struct pg_result *result,
                                              int first, const uint32_t **ret_starts)
{
    const int rows = pg_row_count(result);
    uint32_t *starts = arena_new(arena, uint32_t, (size_t)rows + 1), capacity = 0;
    for (int row = 0; row < rows; row++)
        capacity += count_places(result, row, first + 2);
    struct catalogue_place *places = arena_new(arena, struct catalogue_place, capacity);
    for (int row = 0; row < rows; row++)
        starts[row + 1] =
            starts[row] + read_places(arena, result, row, first, places + starts[row]);
    *ret_starts = starts;
    return places;
}

/* ---- claims ---- */

enum err_code catalogue_check_count(int64_t found, int64_t wanted, struct err *err)
{
    return found == wanted ? ERR_NONE
                           : err_set(err, ERR_CONFLICT,
                                     "the lease was lost: another server merges these blocks");
}
