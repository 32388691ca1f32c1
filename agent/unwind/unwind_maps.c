/*
 * The life of a table and its memory:
 *
 *   unwind_maps_reserve        chunks are allocated, all zero: mapping lists may refer to them, and
 *                              the unwinder uses frame pointers
 *   unwind_maps_fill           rows and rules are written, then each chunk is published by its
 *                              group_count
 *   unwind_maps_fill           again, if rules had no space: the new rows are published, the old
 *                              rows and the uses of their rules go to the list `removed`
 *   unwind_maps_remove_table   the chunks, with rows and rules, go to `removed`
 *   unwind_maps_reclaim        data that has been in `removed` for UNWIND_GRACE_NS is freed
 *
 * Example: at second 10.0 a process is published again. Its old mapping list of 24 KB goes to
 * `removed`, while an unwinder on another CPU may still be searching it. The sweep at second 10.5
 * keeps the list, that at second 11.5 frees it. A stack is unwound in less than a millisecond.
 */
#include "agent/unwind/unwind_maps.h"

#include "agent/process/fair_quota.h"
#include "agent/process/owner_usage.h"
#include "agent/unwind/free_ranges.h"
#include "agent/unwind/unwind_rules.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <assert.h>

static_assert(sizeof(struct unwind_mapping) == 24 && sizeof(struct unwind_chunk) == 32,
              "shared with bpf/");

struct shard {
    bool exists;
    struct free_ranges ranges;
};

/* The owner of a table, and the bytes that count against the owner's quota. */
struct holding {
    uint64_t owner;
    uint32_t bytes; /* size of the rows; 0: not counted */
};

/* The rules that a table uses. */
struct rule_uses {
    uint16_t *records; /* [count] */
    uint32_t count;
    uint32_t missing;       /* number of records of the rules that had no space */
    uint32_t missing_pairs; /* number of those rules that take two records */
};

enum removed_kind { REMOVED_BYTES, REMOVED_CHUNKS, REMOVED_RULES };

/* Removed data that the unwinder may still read. */
struct removed {
    int64_t since_ns;
    enum removed_kind kind;
    uint32_t shard; /* BYTES */
    uint32_t start; /* BYTES: offset; CHUNKS: number of the first one */
    uint32_t size;
    struct rule_uses uses; /* RULES */
};

struct unwind_maps {
    struct unwind_memory memory;
    struct shard *shards;
    uint32_t shard_count; /* existing ones */
    struct free_ranges chunks;
    struct unwind_rules *rules;
    struct rule_uses *uses;   /* by the first chunk of a table */
    struct holding *holdings; /* by the first chunk of a table */
    struct owner_usage held;  /* counted bytes by owner */
    struct removed *removed;
    size_t removed_count;
    size_t removed_capacity;
    uint64_t waiting_bytes;
    uint32_t refused_count;
    uint32_t generation; /* that of the newest mapping list */
};

struct unwind_maps *unwind_maps_create(const struct unwind_memory *memory)
{
    struct unwind_maps *maps = mem_new(struct unwind_maps, 1);
    maps->memory = *memory;
    if (maps->memory.shard_limit > UNWIND_SHARD_COUNT)
        maps->memory.shard_limit = UNWIND_SHARD_COUNT;
    maps->shards = mem_new(struct shard, UNWIND_SHARD_COUNT);
    maps->uses = mem_new(struct rule_uses, UNWIND_CHUNK_COUNT);
    maps->holdings = mem_new(struct holding, UNWIND_CHUNK_COUNT);
    maps->rules = unwind_rules_create(memory->rules);
    free_ranges_init(&maps->chunks, UNWIND_CHUNK_COUNT);
    return maps;
}

void unwind_maps_destroy(struct unwind_maps *maps)
{
    if (!maps)
        return;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        free_ranges_fini(&maps->shards[i].ranges);
    for (uint32_t i = 0; i < UNWIND_CHUNK_COUNT; i++)
        mem_free(maps->uses[i].records);
    for (size_t i = 0; i < maps->removed_count; i++)
        mem_free(maps->removed[i].uses.records);
    free_ranges_fini(&maps->chunks);
    unwind_rules_destroy(maps->rules);
    mem_free(maps->shards);
    mem_free(maps->uses);
    mem_free(maps->holdings);
    owner_usage_fini(&maps->held);
    mem_free(maps->removed);
    mem_free(maps);
}

void unwind_maps_limit_shards(struct unwind_maps *maps, uint32_t shard_limit)
{
    maps->memory.shard_limit = shard_limit < UNWIND_SHARD_COUNT ? shard_limit : UNWIND_SHARD_COUNT;
}

static bool add_shard(struct unwind_maps *maps, uint32_t index)
{
    if (maps->shard_count >= maps->memory.shard_limit)
        return false;
    if (!maps->memory.shard_create(maps->memory.context, index))
        return false;
    free_ranges_init(&maps->shards[index].ranges, UNWIND_SHARD_BYTES);
    maps->shards[index].exists = true;
    maps->shard_count++;
    return true;
}

/* Destroys empty shards. The first one stays, because there are always mapping lists. */
static void drop_free_shards(struct unwind_maps *maps)
{
    for (uint32_t i = 1; maps->memory.shard_destroy && i < UNWIND_SHARD_COUNT; i++) {
        struct shard *shard = &maps->shards[i];
        if (!shard->exists || shard->ranges.free_size < UNWIND_SHARD_BYTES)
            continue;
        maps->memory.shard_destroy(maps->memory.context, i);
        free_ranges_fini(&shard->ranges);
        shard->exists = false;
        maps->shard_count--;
    }
}

/* ---- quotas ---- */

static uint32_t sum_used_bytes(const struct unwind_maps *maps)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        used += maps->shards[i].exists ? UNWIND_SHARD_BYTES - maps->shards[i].ranges.free_size : 0;
    return used;
}

/* The limit may be lower than the number of shards that exist already. */
static uint32_t most_bytes(const struct unwind_maps *maps)
{
    const uint32_t limit = maps->memory.shard_limit;
    return (limit > maps->shard_count ? limit : maps->shard_count) * UNWIND_SHARD_BYTES;
}

bool unwind_maps_is_counted(const struct unwind_maps *maps)
{
    return fair_quota_is_counted(sum_used_bytes(maps), most_bytes(maps));
}

/* Data that would pass the half counts as well: a table may be large and the limit small. */
static bool is_counted_with(const struct unwind_maps *maps, uint64_t bytes)
{
    return sum_used_bytes(maps) + bytes > most_bytes(maps) / 2;
}

/* Whether the owner's quota allows bytes more, when the owner gives given_back up in exchange. */
static bool may_take(const struct unwind_maps *maps, uint64_t owner, uint64_t bytes,
                     uint32_t given_back)
{
    const uint32_t most = most_bytes(maps);
    const uint32_t held = owner_usage_get(&maps->held, owner) - given_back;
    return !owner || !is_counted_with(maps, bytes) ||
           held + bytes <= (most - sum_used_bytes(maps)) / FAIR_QUOTA_DIVISOR;
}

/* ---- bytes ---- */

static uint32_t round_up(uint64_t bytes)
{
    return (uint32_t)((bytes + 7) & ~(uint64_t)7);
}

static bool take_from(struct shard *shard, uint64_t bytes, uint32_t *ret_offset)
{
    const int64_t offset = free_ranges_take(&shard->ranges, round_up(bytes));
    if (offset == FREE_RANGES_NONE)
        return false;
    *ret_offset = (uint32_t)offset;
    return true;
}

/* Allocates bytes, at most a shard; creates a shard if all others are full. False: no space. */
static bool take_bytes(struct unwind_maps *maps, uint64_t bytes, uint32_t *ret_shard,
                       uint32_t *ret_offset)
{
    uint32_t absent = UNWIND_SHARD_COUNT;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++) {
        if (!maps->shards[i].exists) {
            absent = i < absent ? i : absent;
            continue;
        }
        if (take_from(&maps->shards[i], bytes, ret_offset)) {
            *ret_shard = i;
            return true;
        }
    }
    if (absent == UNWIND_SHARD_COUNT || !add_shard(maps, absent))
        return false;
    *ret_shard = absent;
    return take_from(&maps->shards[absent], bytes, ret_offset);
}

static bool write_bytes(struct unwind_maps *maps, uint32_t shard, uint32_t offset,
                        const void *bytes, size_t size)
{
    return maps->memory.shard_write(maps->memory.context, shard, offset, bytes, size);
}

static void add_removed(struct unwind_maps *maps, struct removed removed)
{
    vec_reserve(maps->removed, maps->removed_capacity, maps->removed_count + 1);
    maps->removed[maps->removed_count++] = removed;
    if (removed.kind == REMOVED_BYTES)
        maps->waiting_bytes += removed.size;
}

static bool has_rows(const struct unwind_chunk *chunk)
{
    return chunk->group_count > 0;
}

enum { GROUP_FIXED_BYTES = UNWIND_GROUP_HEAD_BYTES + 2 * UNWIND_GROUP_BLOCKS };
static_assert(UNWIND_GROUP_BLOCKS * UNWIND_BLOCK_BYTES <= UINT16_MAX, "rows of a group");
static_assert((UNWIND_CHUNK_BYTES >> UNWIND_GROUP_SHIFT) * (4 + GROUP_FIXED_BYTES + 1ULL) +
                      3ULL * UNWIND_TABLE_CHUNK_ROWS_MAX <=
                  UNWIND_SHARD_BYTES,
              "each chunk fits a shard");

static void write_u16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

/* Writes the rows of a table's chunk; records: those of its rules. */
struct packer {
    const struct unwind_table_chunk *from;
    const uint16_t *records;
    uint8_t *at;
    uint16_t carry;
};

/* Writes the rows of a block; blocks outside of the table have no rows and the carry NONE. */
static uint32_t write_block(struct packer *packer, uint32_t block)
{
    const struct unwind_table_chunk *from = packer->from;
    const uint32_t number = block - from->first_block;
    const bool is_covered = number < from->block_count;
    const uint32_t first = is_covered ? from->first_rows[number] : 0;
    const uint32_t count = is_covered ? from->first_rows[number + 1] - first : 0;
    write_u16(packer->at, is_covered ? packer->carry : UNWIND_RULE_NONE);
    packer->at += 2;
    for (uint32_t i = 0; i < count; i++, packer->at += 2)
        write_u16(packer->at, packer->records[from->rules[first + i]]);
    if (count) {
        packer->carry = packer->records[from->rules[first + count - 1]];
        memcpy(packer->at, from->addresses + first, count);
        packer->at += count;
    }
    return count;
}

static void write_group(struct packer *packer, uint32_t first_block)
{
    uint8_t *head = packer->at;
    uint32_t row_count = 0;
    packer->at += UNWIND_GROUP_HEAD_BYTES;
    for (uint32_t i = 0; i < UNWIND_GROUP_BLOCKS; i++) {
        write_u16(head + (size_t)2 * i, row_count);
        row_count += write_block(packer, first_block + i);
    }
    write_u16(head + (size_t)2 * UNWIND_GROUP_BLOCKS, row_count);
    if (row_count % 2)
        *packer->at++ = 0; /* groups begin at even offsets */
}

/* The groups of a chunk reach from the block of its first row to that of its last row. */
static void measure_chunk(const struct unwind_table_chunk *from, struct unwind_chunk *chunk)
{
    const uint32_t last = from->first_block + from->block_count - 1;
    chunk->first_group = from->first_block / UNWIND_GROUP_BLOCKS;
    chunk->group_count = last / UNWIND_GROUP_BLOCKS - chunk->first_group + 1;
    /* One more byte per group for the even offset. */
    chunk->bytes = round_up(chunk->group_count * (UINT64_C(4) + GROUP_FIXED_BYTES + 1) +
                            3 * (uint64_t)from->row_count);
}

static bool copy_chunk(struct unwind_maps *maps, const struct unwind_table_chunk *from,
                       const uint16_t *records, struct unwind_chunk *ret_chunk)
{
    struct unwind_chunk chunk = {0};
    *ret_chunk = chunk;
    if (!from->first_rows || !from->block_count)
        return true;
    measure_chunk(from, &chunk);
    if (!take_bytes(maps, chunk.bytes, &chunk.shard, &chunk.groups))
        return false;
    uint32_t *index = mem_alloc(chunk.bytes, 1);
    uint8_t *bytes = (uint8_t *)index;
    struct packer packer = {.from = from,
                            .records = records,
                            .at = (uint8_t *)(index + chunk.group_count),
                            .carry = UNWIND_RULE_NONE};
    for (uint32_t i = 0; i < chunk.group_count; i++) {
        index[i] = chunk.groups + (uint32_t)(packer.at - bytes);
        write_group(&packer, (chunk.first_group + i) * UNWIND_GROUP_BLOCKS);
    }
    const bool is_written =
        write_bytes(maps, chunk.shard, chunk.groups, bytes, (size_t)(packer.at - bytes));
    mem_free(index);
    if (!is_written)
        free_ranges_give(&maps->shards[chunk.shard].ranges, chunk.groups, chunk.bytes);
    else
        *ret_chunk = chunk;
    return is_written;
}

static void free_rows(struct unwind_maps *maps, const struct unwind_chunk *chunks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (has_rows(&chunks[i]))
            free_ranges_give(&maps->shards[chunks[i].shard].ranges, chunks[i].groups,
                             chunks[i].bytes);
    }
}

static enum err_code refuse_space(struct unwind_maps *maps, const char *what, struct err *err)
{
    maps->refused_count++;
    return err_set(err, ERR_LIMIT, "there is no space for %s: %u shards of 4 MiB are in use", what,
                   maps->shard_count);
}

enum err_code unwind_maps_reserve(struct unwind_maps *maps, uint64_t owner, uint64_t start,
                                  uint32_t chunk_count, struct unwind_table_ref *ret_ref,
                                  struct err *err)
{
    const int64_t first = free_ranges_take(&maps->chunks, chunk_count);
    if (first == FREE_RANGES_NONE)
        return refuse_space(maps, "the chunks of a table", err);
    memset(&maps->memory.chunks[first], 0, chunk_count * sizeof maps->memory.chunks[0]);
    maps->holdings[first] = (struct holding){.owner = owner};
    *ret_ref = (struct unwind_table_ref){start, (uint32_t)first, (uint16_t)chunk_count};
    return ERR_NONE;
}

/* The unwinder may read the chunk meanwhile: group_count, which makes its rows visible, is stored
 * last. */
static void publish_chunk(struct unwind_chunk *to, const struct unwind_chunk *from)
{
    struct unwind_chunk empty = *from;
    empty.group_count = 0;
    *to = empty;
    __atomic_store_n(&to->group_count, from->group_count, __ATOMIC_RELEASE);
}

/* Adds the rules of a table and finds their records; rows whose rule has no space get
 * UNWIND_RULE_FULL. */
static struct rule_uses add_rules(struct unwind_maps *maps, uint64_t owner,
                                  const struct unwind_table *table, uint16_t *ret_records)
{
    struct rule_uses uses = {.count = 0};
    struct unwind_rules_quota quota = unwind_rules_quota(maps->rules, owner);
    for (uint32_t i = 0; i < table->facts.rule_count; i++) {
        ret_records[i] = unwind_rules_take(maps->rules, &table->rules[i], &quota);
        uses.count += ret_records[i] >= UNWIND_RULE_FIXED_COUNT;
        if (ret_records[i] == UNWIND_RULE_FULL && i >= UNWIND_RULE_FIXED_COUNT) {
            const bool is_pair = cfi_rule_has_extra(&table->rules[i].rule);
            uses.missing += is_pair ? 2 : 1;
            uses.missing_pairs += is_pair;
        }
    }
    uses.records = mem_new(uint16_t, uses.count + 1);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->facts.rule_count; i++) {
        if (ret_records[i] >= UNWIND_RULE_FIXED_COUNT)
            uses.records[kept++] = ret_records[i];
    }
    return uses;
}

static void free_rules(struct unwind_maps *maps, struct rule_uses *uses)
{
    unwind_rules_give(maps->rules, uses->records, uses->count);
    mem_free(uses->records);
    *uses = (struct rule_uses){0};
}

static uint64_t rows_bytes(const struct unwind_table *table)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < table->facts.chunk_count; i++) {
        struct unwind_chunk chunk = {0};
        if (table->chunks[i].first_rows && table->chunks[i].block_count)
            measure_chunk(&table->chunks[i], &chunk);
        bytes += chunk.bytes;
    }
    return bytes;
}

/* Writes the chunks of a table; the unwinder does not see them yet. */
static bool copy_chunks(struct unwind_maps *maps, const struct unwind_table *table,
                        const uint16_t *records, struct unwind_chunk *ret_chunks)
{
    for (uint32_t i = 0; i < table->facts.chunk_count; i++) {
        if (!copy_chunk(maps, &table->chunks[i], records, &ret_chunks[i])) {
            free_rows(maps, ret_chunks, i);
            return false;
        }
    }
    return true;
}

/* Removes the rows and rules that were in the chunks when rules were missing. */
static void remove_old_content(struct unwind_maps *maps, const struct unwind_table_ref *ref,
                               int64_t now_ns)
{
    struct rule_uses *uses = &maps->uses[ref->first_chunk];
    if (!uses->records)
        return;
    add_removed(maps, (struct removed){.since_ns = now_ns, .kind = REMOVED_RULES, .uses = *uses});
    *uses = (struct rule_uses){0};
    for (uint32_t i = 0; i < ref->chunk_count; i++) {
        const struct unwind_chunk *chunk = &maps->memory.chunks[ref->first_chunk + i];
        if (has_rows(chunk))
            add_removed(maps, (struct removed){.since_ns = now_ns,
                                               .kind = REMOVED_BYTES,
                                               .shard = chunk->shard,
                                               .start = chunk->groups,
                                               .size = chunk->bytes});
    }
}

enum err_code unwind_maps_fill(struct unwind_maps *maps, const struct unwind_table_ref *ref,
                               const struct unwind_table *table, int64_t now_ns, struct err *err)
{
    const uint32_t count = ref->chunk_count;
    if (table->start != ref->start || table->facts.chunk_count != count)
        return err_set(err, ERR_INVALID, "the file has changed since its table was planned");
    arena_auto arena = arena_create();
    uint16_t *records = arena_new_raw(arena, uint16_t, table->facts.rule_count);
    struct unwind_chunk *chunks = arena_new(arena, struct unwind_chunk, count);
    struct holding *holding = &maps->holdings[ref->first_chunk];
    const uint64_t bytes = rows_bytes(table);
    const bool is_counted = is_counted_with(maps, bytes);
    if (!may_take(maps, holding->owner, bytes, holding->bytes))
        return refuse_space(maps, "a table of this size of this owner", err);
    struct rule_uses uses = add_rules(maps, holding->owner, table, records);
    if (!copy_chunks(maps, table, records, chunks)) {
        free_rules(maps, &uses);
        return refuse_space(maps, "a table", err);
    }
    remove_old_content(maps, ref, now_ns);
    maps->uses[ref->first_chunk] = uses;
    owner_usage_take(&maps->held, holding->owner, holding->bytes);
    holding->bytes = is_counted && holding->owner ? (uint32_t)bytes : 0;
    owner_usage_add(&maps->held, holding->owner, holding->bytes);
    for (uint32_t i = 0; i < count; i++)
        publish_chunk(&maps->memory.chunks[ref->first_chunk + i], &chunks[i]);
    return ERR_NONE;
}

enum unwind_rules_state unwind_maps_rules_state(const struct unwind_maps *maps,
                                                const struct unwind_table_ref *ref)
{
    const struct rule_uses *uses = &maps->uses[ref->first_chunk];
    if (!ref->chunk_count || uses->missing == 0)
        return UNWIND_RULES_COMPLETE;
    if (uses->missing > unwind_rules_largest_quota())
        return UNWIND_RULES_TOO_MANY;
    const uint64_t owner = maps->holdings[ref->first_chunk].owner;
    return uses->missing > unwind_rules_quota(maps->rules, owner).left ||
                   uses->missing_pairs > unwind_rules_pairs(maps->rules)
               ? UNWIND_RULES_NO_SPACE
               : UNWIND_RULES_FIT_NOW;
}

enum err_code unwind_maps_add_table(struct unwind_maps *maps, const struct unwind_table *table,
                                    struct unwind_table_ref *ret_ref, struct err *err)
{
    struct unwind_table_ref ref;
    if (unwind_maps_reserve(maps, 0, table->start, table->facts.chunk_count, &ref, err))
        return err->code;
    if (unwind_maps_fill(maps, &ref, table, 0, err)) {
        free_ranges_give(&maps->chunks, ref.first_chunk, ref.chunk_count);
        return err->code;
    }
    *ret_ref = ref;
    return ERR_NONE;
}

void unwind_maps_remove_table(struct unwind_maps *maps, const struct unwind_table_ref *ref,
                              int64_t now_ns)
{
    if (!ref->chunk_count)
        return;
    add_removed(maps, (struct removed){.since_ns = now_ns,
                                       .kind = REMOVED_CHUNKS,
                                       .start = ref->first_chunk,
                                       .size = ref->chunk_count});
    for (uint32_t i = 0; i < ref->chunk_count; i++) {
        const struct unwind_chunk *chunk = &maps->memory.chunks[ref->first_chunk + i];
        maps->waiting_bytes += has_rows(chunk) ? chunk->bytes : 0;
    }
}

static uint32_t list_bytes(uint32_t count)
{
    return count * (uint32_t)(sizeof(uint64_t) + sizeof(struct unwind_mapping));
}

enum err_code unwind_maps_put_mappings(struct unwind_maps *maps, uint64_t owner, uint32_t dropped,
                                       const uint64_t *starts,
                                       const struct unwind_mapping *mappings, uint32_t count,
                                       struct unwind_mapping_list *ret_list, struct err *err)
{
    struct unwind_mapping_list list = {.count = count};
    if (++maps->generation == 0)
        maps->generation = 1;
    list.generation = maps->generation;
    if (count > UNWIND_MAPPINGS_MAX)
        return err_set(err, ERR_TOO_LARGE, "%u executable mappings are more than %u", count,
                       UNWIND_MAPPINGS_MAX);
    if (count) {
        if (!may_take(maps, owner, list_bytes(count), list_bytes(dropped)) ||
            !take_bytes(maps, list_bytes(count), &list.shard, &list.offset))
            return refuse_space(maps, "the mappings of a process", err);
        const uint32_t mappings_offset = list.offset + count * (uint32_t)sizeof *starts;
        /* The unwinder sees the whole list: the kernel updates its map with a store-release. */
        if (!write_bytes(maps, list.shard, list.offset, starts, count * sizeof *starts) ||
            !write_bytes(maps, list.shard, mappings_offset, mappings, count * sizeof *mappings)) {
            free_ranges_give(&maps->shards[list.shard].ranges, list.offset,
                             round_up(list_bytes(count)));
            return refuse_space(maps, "the mappings of a process", err);
        }
    }
    owner_usage_add(&maps->held, owner, list_bytes(count));
    *ret_list = list;
    return ERR_NONE;
}

void unwind_maps_drop_mappings(struct unwind_maps *maps, uint64_t owner,
                               const struct unwind_mapping_list *list, int64_t now_ns)
{
    owner_usage_take(&maps->held, owner, list_bytes(list->count));
    if (list->count)
        add_removed(maps, (struct removed){.since_ns = now_ns,
                                           .kind = REMOVED_BYTES,
                                           .shard = list->shard,
                                           .start = list->offset,
                                           .size = list_bytes(list->count)});
}

static void free_chunks(struct unwind_maps *maps, uint32_t first, uint32_t count)
{
    const struct unwind_chunk *chunks = &maps->memory.chunks[first];
    for (uint32_t i = 0; i < count; i++)
        maps->waiting_bytes -= has_rows(&chunks[i]) ? chunks[i].bytes : 0;
    free_rows(maps, chunks, count);
    free_rules(maps, &maps->uses[first]);
    owner_usage_take(&maps->held, maps->holdings[first].owner, maps->holdings[first].bytes);
    maps->holdings[first] = (struct holding){0};
    free_ranges_give(&maps->chunks, first, count);
}

static void free_removed(struct unwind_maps *maps, struct removed *removed)
{
    switch (removed->kind) {
    case REMOVED_BYTES:
        free_ranges_give(&maps->shards[removed->shard].ranges, removed->start, removed->size);
        maps->waiting_bytes -= removed->size;
        break;
    case REMOVED_CHUNKS:
        free_chunks(maps, removed->start, removed->size);
        break;
    case REMOVED_RULES:
        free_rules(maps, &removed->uses);
        break;
    }
}

void unwind_maps_reclaim(struct unwind_maps *maps, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < maps->removed_count; i++) {
        if (now_ns - maps->removed[i].since_ns > UNWIND_GRACE_NS)
            free_removed(maps, &maps->removed[i]);
        else
            maps->removed[kept++] = maps->removed[i];
    }
    maps->removed_count = kept;
    drop_free_shards(maps);
}

void unwind_maps_stats_get(const struct unwind_maps *maps, struct unwind_maps_stats *ret_stats)
{
    struct unwind_maps_stats stats = {
        .shard_count = maps->shard_count,
        .chunk_count = UNWIND_CHUNK_COUNT - maps->chunks.free_size,
        .rule_count = unwind_rules_used(maps->rules),
        .refused_count = maps->refused_count,
        .shard_bytes = (uint64_t)maps->shard_count * UNWIND_SHARD_BYTES,
        .waiting_bytes = maps->waiting_bytes,
    };
    stats.used_bytes = sum_used_bytes(maps);
    *ret_stats = stats;
}
