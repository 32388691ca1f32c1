#include "store/maintain/verify.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "store/catalogue/catalogue_check.h"
#include "store/query/block_cache.h"

#include <inttypes.h>

enum { CACHE_BYTES = 1 << 20 };

struct store_catalogue {
    const struct catalogue_entry *entries;
    uint32_t count;
};

struct verification {
    const struct store_check *check;
    bool is_copy;
    struct block_cache *blocks;
    struct arena *arena;
    struct store_check_result result;
    struct err *err;
};

static void report_problem(struct verification *verification, enum store_problem problem,
                           const char *object_key, int64_t tenant_id, const char *detail)
{
    const struct store_check *check = verification->check;
    verification->result.problem_counts[problem]++;
    if (check->found)
        check->found(check->context, problem, object_key, tenant_id, detail);
}

/* A problem does not count if the object was removed meanwhile, as merged ones are. */
static enum err_code report_if_in_catalogue(struct verification *verification,
                                            enum store_problem problem,
                                            const struct catalogue_entry *entry, const char *detail)
{
    bool is_in_catalogue = verification->is_copy;
    const char *key = entry->places[0].object_key;
    enum err_code code = is_in_catalogue
                             ? ERR_NONE
                             : catalogue_has_object(verification->check->database, key,
                                                    &is_in_catalogue, verification->err);
    if (!code && is_in_catalogue)
        report_problem(verification, problem, key, entry->tenant_id, detail);
    return code;
}

/* ---- one entry ---- */

struct sums {
    uint64_t row_count;
    int64_t begin_ns;
    int64_t end_ns;
    int64_t reach_ns;
};

static void add_reach(struct sums *sums, const struct block *block)
{
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (granules[i].reach_ns > sums->reach_ns)
            sums->reach_ns = granules[i].reach_ns;
    }
}

static void add_footer(struct sums *sums, const struct block_footer *footer)
{
    sums->row_count += footer->row_count;
    sums->begin_ns = footer->begin_ns < sums->begin_ns ? footer->begin_ns : sums->begin_ns;
    sums->end_ns = footer->end_ns > sums->end_ns ? footer->end_ns : sums->end_ns;
}

static enum err_code read_place(struct verification *verification,
                                const struct catalogue_entry *entry,
                                const struct catalogue_place *place, struct sums *sums,
                                struct err *err)
{
    struct open_block opened;
    enum err_code code =
        block_cache_borrow(verification->blocks, entry->tenant_id, place, &opened, err);
    if (code)
        return code;
    const struct block *block = opened.block;
    code = block_verify(block, err);
    if (!code)
        code = block_verify_series_totals(block, err);
    const struct block_footer *footer = block_footer(block);
    if (!code) {
        add_footer(sums, footer);
        add_reach(sums, block);
        verification->result.block_count++;
        verification->result.byte_count += footer->block_bytes;
    }
    if (!code && footer->block_bytes != (place->bytes ? place->bytes : entry->object_bytes))
        code = err_set(err, ERR_CORRUPT, "%" PRIu64 " bytes, the catalogue records %" PRIu64,
                       footer->block_bytes, place->bytes ? place->bytes : entry->object_bytes);
    block_cache_return(&opened);
    return code;
}

/* As read_place; a place that is missing or unreadable is read again if the object store can be
 * used. *ret_is_outage: it cannot be used, and *err describes that. */
static enum err_code read_place_twice(struct verification *verification,
                                      const struct catalogue_entry *entry,
                                      const struct catalogue_place *place, struct sums *sums,
                                      bool *ret_is_outage, struct err *err)
{
    const struct store_check *check = verification->check;
    enum err_code code = read_place(verification, entry, place, sums, err);
    const bool may_be_outage = code == ERR_NOT_FOUND || (code == ERR_IO && err->is_unreadable);
    *ret_is_outage = false;
    if (verification->is_copy || !check->check_outage || !may_be_outage)
        return code;
    code = check->check_outage(check->context, place->object_key, err);
    *ret_is_outage = code != ERR_NONE;
    if (code)
        return code;
    *err = (struct err){0};
    return read_place(verification, entry, place, sums, err);
}

static enum err_code compare_with_catalogue(struct verification *verification,
                                            const struct catalogue_entry *entry,
                                            const struct sums *sums)
{
    if (sums->row_count == entry->row_count && sums->begin_ns == entry->begin_ns &&
        sums->end_ns == entry->end_ns && sums->reach_ns == entry->reach_ns)
        return ERR_NONE;
    return report_if_in_catalogue(
        verification, STORE_PROBLEM_DIFFERS, entry,
        arena_printf(verification->arena,
                     "%" PRIu64 " rows of %" PRId64 " to %" PRId64 " that end by %" PRId64
                     "; the catalogue has %" PRIu64 " of %" PRId64 " to %" PRId64
                     " that end by %" PRId64,
                     sums->row_count, sums->begin_ns, sums->end_ns, sums->reach_ns,
                     entry->row_count, entry->begin_ns, entry->end_ns, entry->reach_ns));
}

/* The part can be read, so its mark is removed and merges take it again. */
static enum err_code unmark(struct verification *verification, const struct catalogue_entry *entry)
{
    bool did = false;
    enum err_code code =
        catalogue_unmark_object(verification->check->database, entry->places[0].object_key,
                                entry->tenant_id, &did, verification->err);
    verification->result.unmarked_count += did;
    return code;
}

/* Verifies all places of an entry, so that one damaged block does not hide others. */
static enum err_code verify_entry(struct verification *verification,
                                  const struct catalogue_entry *entry)
{
    struct sums sums = {.begin_ns = INT64_MAX, .end_ns = INT64_MIN, .reach_ns = INT64_MIN};
    bool is_whole = true;
    for (uint32_t i = 0; i < entry->place_count; i++) {
        struct err err = {0};
        bool is_outage;
        enum err_code code =
            read_place_twice(verification, entry, &entry->places[i], &sums, &is_outage, &err);
        is_whole &= !code;
        if (is_outage)
            *verification->err = err;
        else if (code == ERR_CORRUPT)
            code = report_if_in_catalogue(verification, STORE_PROBLEM_BROKEN, entry, err.message);
        else if (code == ERR_IO && err.is_unreadable)
            code =
                report_if_in_catalogue(verification, STORE_PROBLEM_UNREADABLE, entry, err.message);
        else if (code == ERR_NOT_FOUND)
            code = report_if_in_catalogue(verification, STORE_PROBLEM_MISSING, entry,
                                          "there is no object");
        else if (code)
            *verification->err = err;
        if (code)
            return code;
    }
    if (!is_whole)
        return ERR_NONE;
    const bool is_unmarked = entry->is_marked && !verification->is_copy;
    enum err_code code = is_unmarked ? unmark(verification, entry) : ERR_NONE;
    return code ? code : compare_with_catalogue(verification, entry, &sums);
}

static enum err_code verify_entries(struct verification *verification,
                                    const struct catalogue_entry *entries, uint32_t count)
{
    const struct store_check *check = verification->check;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < count && !code; i++) {
        const bool is_new =
            !i || strcmp(entries[i].places[0].object_key, entries[i - 1].places[0].object_key) != 0;
        verification->result.object_count += is_new;
        if (check->progress)
            check->progress(check->context, i, count, verification->result.byte_count);
        if (entries[i].place_count)
            code = verify_entry(verification, &entries[i]);
    }
    return code;
}

static enum err_code verify_catalogue(const struct store_check *check,
                                      const struct store_catalogue *catalogue, bool is_copy,
                                      struct arena *arena, struct store_check_result *ret_result,
                                      struct err *err)
{
    struct verification *verification = arena_new(arena, struct verification, 1);
    verification->check = check;
    verification->is_copy = is_copy;
    verification->arena = arena;
    verification->err = err;
    verification->blocks = block_cache_create(check->objects, CACHE_BYTES);
    enum err_code code = verify_entries(verification, catalogue->entries, catalogue->count);
    block_cache_destroy(verification->blocks);
    *ret_result = verification->result;
    return code;
}

static enum err_code read_catalogue(struct pg_pool *database, struct arena *arena,
                                    const char *const *keys, uint32_t key_count,
                                    struct store_catalogue **ret_catalogue, struct err *err)
{
    struct store_catalogue *catalogue = arena_new(arena, struct store_catalogue, 1);
    *ret_catalogue = catalogue;
    return catalogue_list_all(database, arena, keys, key_count, &catalogue->entries,
                              &catalogue->count, err);
}

enum err_code verify_run(const struct store_check *check, struct store_check_result *ret_result,
                         struct err *err)
{
    arena_auto arena = arena_create();
    struct store_catalogue *catalogue;
    const enum err_code code =
        read_catalogue(check->database, arena, check->keys, check->key_count, &catalogue, err);
    return code ? code : verify_catalogue(check, catalogue, false, arena, ret_result, err);
}

enum err_code verify_read_catalogue(struct pg_pool *database, struct arena *arena,
                                    const struct store_catalogue **ret_catalogue, struct err *err)
{
    struct store_catalogue *catalogue;
    const enum err_code code = read_catalogue(database, arena, NULL, 0, &catalogue, err);
    *ret_catalogue = catalogue;
    return code;
}

enum err_code verify_copy(const struct store_check *check, const struct store_catalogue *catalogue,
                          struct store_check_result *ret_result, struct err *err)
{
    arena_auto arena = arena_create();
    return verify_catalogue(check, catalogue, true, arena, ret_result, err);
}
