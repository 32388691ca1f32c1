#include "agent/unwind/unwind_maps.h"

#include "agent/process/fair_quota.h"
#include "agent/process/owner_usage.h"
#include "agent/unwind/free_ranges.h"
#include "agent/unwind/unwind_rules.h"
#include "lib/base/mem.h"

#include <assert.h>

static_assert(sizeof(struct unwind_mapping) == 24 && sizeof(struct unwind_chunk) == 32,
              "shared with bpf/");

struct shard {
    bool is_there;
    struct free_ranges ranges;
};

/* Of a table, by its first chunk. */
struct holding {
    uint64_t owner;
    uint32_t bytes; /* of rows, where they are counted */
};

/* The rules of a table. */
struct rule_uses {
    uint16_t *places; /* [count] */
    uint32_t count;
    uint32_t lacking;       /* records of those that there was no room for */
    uint32_t lacking_pairs; /* of them, rules of two */
};

enum waiting_kind { WAITING_BYTES, WAITING_CHUNKS, WAITING_RULES };

/* Removed, and perhaps still read. */
struct waiting {
    int64_t since_ns;
    enum waiting_kind kind;
    uint32_t shard; /* BYTES */
    uint32_t start; /* BYTES, CHUNKS: of their numbers */
    uint32_t size;
    struct rule_uses uses; /* RULES */
};

struct unwind_maps {
    struct unwind_memory memory;
    struct shard *shards;
    uint32_t shard_count; /* that are there */
    struct free_ranges chunks;
    struct unwind_rules *rules;
    struct rule_uses *uses; /* by a table's first chunk */
    struct holding *holdings;
    struct owner_usage held; /* bytes, where they are counted */
    struct waiting *waiting;
    size_t waiting_count;
    size_t waiting_capacity;
    uint64_t waiting_bytes;
    uint32_t refused_count;
    uint32_t generation; /* of the last run */
};

struct unwind_maps *unwind_maps_create(const struct unwind_memory *memory)
{
    struct unwind_maps *space = mem_new(struct unwind_maps, 1);
    space->memory = *memory;
    if (space->memory.shard_limit > UNWIND_SHARD_COUNT)
        space->memory.shard_limit = UNWIND_SHARD_COUNT;
    space->shards = mem_new(struct shard, UNWIND_SHARD_COUNT);
    space->uses = mem_new(struct rule_uses, UNWIND_CHUNK_COUNT);
    space->holdings = mem_new(struct holding, UNWIND_CHUNK_COUNT);
    space->rules = unwind_rules_create(memory->rules);
    free_ranges_init(&space->chunks, UNWIND_CHUNK_COUNT);
    return space;
}

void unwind_maps_destroy(struct unwind_maps *space)
{
    if (!space)
        return;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        free_ranges_fini(&space->shards[i].ranges);
    for (uint32_t i = 0; i < UNWIND_CHUNK_COUNT; i++)
        mem_free(space->uses[i].places);
    for (size_t i = 0; i < space->waiting_count; i++)
        mem_free(space->waiting[i].uses.places);
    free_ranges_fini(&space->chunks);
    unwind_rules_destroy(space->rules);
    mem_free(space->shards);
    mem_free(space->uses);
    mem_free(space->holdings);
    owner_usage_fini(&space->held);
    mem_free(space->waiting);
    mem_free(space);
}

void unwind_maps_limit_shards(struct unwind_maps *space, uint32_t shard_limit)
{
    space->memory.shard_limit = shard_limit < UNWIND_SHARD_COUNT ? shard_limit : UNWIND_SHARD_COUNT;
}

static bool add_shard(struct unwind_maps *space, uint32_t index)
{
    if (space->shard_count >= space->memory.shard_limit)
        return false;
    if (!space->memory.shard_create(space->memory.context, index))
        return false;
    free_ranges_init(&space->shards[index].ranges, UNWIND_SHARD_BYTES);
    space->shards[index].is_there = true;
    space->shard_count++;
    return true;
}

/* All but the first: some process always has mappings. */
static void drop_free_shards(struct unwind_maps *space)
{
    for (uint32_t i = 1; space->memory.shard_destroy && i < UNWIND_SHARD_COUNT; i++) {
        struct shard *shard = &space->shards[i];
        if (!shard->is_there || shard->ranges.free_size < UNWIND_SHARD_BYTES)
            continue;
        space->memory.shard_destroy(space->memory.context, i);
        free_ranges_fini(&shard->ranges);
        shard->is_there = false;
        space->shard_count--;
    }
}

/* ---- shares ---- */

static uint32_t used_bytes(const struct unwind_maps *space)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        used +=
            space->shards[i].is_there ? UNWIND_SHARD_BYTES - space->shards[i].ranges.free_size : 0;
    return used;
}

/* Shards from before the limit became less are there nevertheless. */
static uint32_t most_bytes(const struct unwind_maps *space)
{
    const uint32_t limit = space->memory.shard_limit;
    return (limit > space->shard_count ? limit : space->shard_count) * UNWIND_SHARD_BYTES;
}

bool unwind_maps_is_counted(const struct unwind_maps *space)
{
    return fair_quota_is_counted(used_bytes(space), most_bytes(space));
}

/* One that passes the half is counted: a table may be large, and a limit small. */
static bool is_counted_with(const struct unwind_maps *space, uint64_t bytes)
{
    return used_bytes(space) + bytes > most_bytes(space) / 2;
}

/* Does an owner's share suffice, when what it gives back for it is taken off? */
static bool may_take(const struct unwind_maps *space, uint64_t owner, uint64_t bytes,
                     uint32_t given_back)
{
    const uint32_t most = most_bytes(space);
    const uint32_t held = owner_usage_get(&space->held, owner) - given_back;
    return !owner || !is_counted_with(space, bytes) ||
           held + bytes <= (most - used_bytes(space)) / FAIR_QUOTA_DIVISOR;
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

/* Room for bytes, at most a shard; false when there is none. */
static bool take_bytes(struct unwind_maps *space, uint64_t bytes, uint32_t *ret_shard,
                       uint32_t *ret_offset)
{
    uint32_t absent = UNWIND_SHARD_COUNT;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++) {
        if (!space->shards[i].is_there) {
            absent = i < absent ? i : absent;
            continue;
        }
        if (take_from(&space->shards[i], bytes, ret_offset)) {
            *ret_shard = i;
            return true;
        }
    }
    if (absent == UNWIND_SHARD_COUNT || !add_shard(space, absent))
        return false;
    *ret_shard = absent;
    return take_from(&space->shards[absent], bytes, ret_offset);
}

static bool write_bytes(struct unwind_maps *space, uint32_t shard, uint32_t offset,
                        const void *bytes, size_t size)
{
    return space->memory.shard_write(space->memory.context, shard, offset, bytes, size);
}

static void wait_for(struct unwind_maps *space, struct waiting waiting)
{
    if (space->waiting_count == space->waiting_capacity) {
        space->waiting_capacity = space->waiting_capacity ? space->waiting_capacity * 2 : 64;
        space->waiting =
            mem_resize(space->waiting, space->waiting_capacity, sizeof *space->waiting);
    }
    space->waiting[space->waiting_count++] = waiting;
    if (waiting.kind == WAITING_BYTES)
        space->waiting_bytes += waiting.size;
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

static void put_u16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

/* What is put together of a table's rows; places are the records of its rules. */
struct packer {
    const struct unwind_table_chunk *from;
    const uint16_t *places;
    uint8_t *at;
    uint16_t carry;
};

/* The rows of a block; those before and behind the table's own have none, and nothing in force. */
static uint32_t put_block(struct packer *packer, uint32_t block)
{
    const struct unwind_table_chunk *from = packer->from;
    const uint32_t number = block - from->first_block;
    const bool is_covered = number < from->block_count;
    const uint32_t first = is_covered ? from->first_rows[number] : 0;
    const uint32_t count = is_covered ? from->first_rows[number + 1] - first : 0;
    put_u16(packer->at, is_covered ? packer->carry : UNWIND_RULE_NONE);
    packer->at += 2;
    for (uint32_t i = 0; i < count; i++, packer->at += 2)
        put_u16(packer->at, packer->places[from->rules[first + i]]);
    if (count) {
        packer->carry = packer->places[from->rules[first + count - 1]];
        memcpy(packer->at, from->addresses + first, count);
        packer->at += count;
    }
    return count;
}

static void put_group(struct packer *packer, uint32_t first_block)
{
    uint8_t *head = packer->at;
    uint32_t row_count = 0;
    packer->at += UNWIND_GROUP_HEAD_BYTES;
    for (uint32_t i = 0; i < UNWIND_GROUP_BLOCKS; i++) {
        put_u16(head + (size_t)2 * i, row_count);
        row_count += put_block(packer, first_block + i);
    }
    put_u16(head + (size_t)2 * UNWIND_GROUP_BLOCKS, row_count);
    if (row_count % 2)
        *packer->at++ = 0; /* groups are at even places */
}

/* Groups from the one of the first row's block to the one of the last's. */
static void measure(const struct unwind_table_chunk *from, struct unwind_chunk *chunk)
{
    const uint32_t last = from->first_block + from->block_count - 1;
    chunk->first_group = from->first_block / UNWIND_GROUP_BLOCKS;
    chunk->group_count = last / UNWIND_GROUP_BLOCKS - chunk->first_group + 1;
    /* One more of each group for what makes it even. */
    chunk->bytes = round_up(chunk->group_count * (UINT64_C(4) + GROUP_FIXED_BYTES + 1) +
                            3 * (uint64_t)from->row_count);
}

static bool copy_chunk(struct unwind_maps *space, const struct unwind_table_chunk *from,
                       const uint16_t *places, struct unwind_chunk *ret_chunk)
{
    struct unwind_chunk chunk = {0};
    *ret_chunk = chunk;
    if (!from->first_rows || !from->block_count)
        return true;
    measure(from, &chunk);
    if (!take_bytes(space, chunk.bytes, &chunk.shard, &chunk.groups))
        return false;
    uint32_t *index = mem_alloc(chunk.bytes, 1);
    uint8_t *bytes = (uint8_t *)index;
    struct packer packer = {.from = from,
                            .places = places,
                            .at = (uint8_t *)(index + chunk.group_count),
                            .carry = UNWIND_RULE_NONE};
    for (uint32_t i = 0; i < chunk.group_count; i++) {
        index[i] = chunk.groups + (uint32_t)(packer.at - bytes);
        put_group(&packer, (chunk.first_group + i) * UNWIND_GROUP_BLOCKS);
    }
    const bool is_written =
        write_bytes(space, chunk.shard, chunk.groups, bytes, (size_t)(packer.at - bytes));
    mem_free(index);
    if (!is_written)
        free_ranges_give(&space->shards[chunk.shard].ranges, chunk.groups, chunk.bytes);
    else
        *ret_chunk = chunk;
    return is_written;
}

static void give_rows(struct unwind_maps *space, const struct unwind_chunk *chunks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (has_rows(&chunks[i]))
            free_ranges_give(&space->shards[chunks[i].shard].ranges, chunks[i].groups,
                             chunks[i].bytes);
    }
}

static enum err_code refuse(struct unwind_maps *space, const char *what, struct err *err)
{
    space->refused_count++;
    return err_set(err, ERR_LIMIT, "there is no room for %s: %u shards of 4 MiB are in use", what,
                   space->shard_count);
}

enum err_code unwind_maps_reserve(struct unwind_maps *space, uint64_t owner, uint64_t start,
                                  uint32_t chunk_count, struct unwind_table_ref *ret_ref,
                                  struct err *err)
{
    const int64_t first = free_ranges_take(&space->chunks, chunk_count);
    if (first == FREE_RANGES_NONE)
        return refuse(space, "the chunks of a table", err);
    memset(&space->memory.chunks[first], 0, chunk_count * sizeof space->memory.chunks[0]);
    space->holdings[first] = (struct holding){.owner = owner};
    *ret_ref = (struct unwind_table_ref){start, (uint32_t)first, (uint16_t)chunk_count};
    return ERR_NONE;
}

/* Walks may come by: a chunk has no rows until all else of it is there. */
static void publish_chunk(struct unwind_chunk *to, const struct unwind_chunk *from)
{
    struct unwind_chunk empty = *from;
    empty.group_count = 0;
    *to = empty;
    __atomic_store_n(&to->group_count, from->group_count, __ATOMIC_RELEASE);
}

/* Those that a table names, and where they are; of those that there is no room for, the rows stop.
 */
static struct rule_uses take_rules(struct unwind_maps *space, uint64_t owner,
                                   const struct unwind_table *table, uint16_t *ret_places)
{
    struct rule_uses uses = {.count = 0};
    struct unwind_rules_share share = unwind_rules_share(space->rules, owner);
    for (uint32_t i = 0; i < table->facts.rule_count; i++) {
        ret_places[i] = unwind_rules_take(space->rules, &table->rules[i], &share);
        uses.count += ret_places[i] >= UNWIND_RULE_FIXED_COUNT;
        if (ret_places[i] == UNWIND_RULE_FULL && i >= UNWIND_RULE_FIXED_COUNT) {
            const bool is_pair = cfi_rule_has_extra(&table->rules[i].rule);
            uses.lacking += is_pair ? 2 : 1;
            uses.lacking_pairs += is_pair;
        }
    }
    uses.places = mem_new(uint16_t, uses.count + 1);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->facts.rule_count; i++) {
        if (ret_places[i] >= UNWIND_RULE_FIXED_COUNT)
            uses.places[kept++] = ret_places[i];
    }
    return uses;
}

static void give_rules(struct unwind_maps *space, struct rule_uses *uses)
{
    unwind_rules_give(space->rules, uses->places, uses->count);
    mem_free(uses->places);
    *uses = (struct rule_uses){0};
}

static uint64_t rows_bytes(const struct unwind_table *table)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < table->facts.chunk_count; i++) {
        struct unwind_chunk chunk = {0};
        if (table->chunks[i].first_rows && table->chunks[i].block_count)
            measure(&table->chunks[i], &chunk);
        bytes += chunk.bytes;
    }
    return bytes;
}

/* A table's chunks, written and not shown to anybody yet. */
static bool copy_chunks(struct unwind_maps *space, const struct unwind_table *table,
                        const uint16_t *places, struct unwind_chunk *ret_chunks)
{
    for (uint32_t i = 0; i < table->facts.chunk_count; i++) {
        if (!copy_chunk(space, &table->chunks[i], places, &ret_chunks[i])) {
            give_rows(space, ret_chunks, i);
            return false;
        }
    }
    return true;
}

/* What the place had before, when rules were lacking. */
static void let_old_wait(struct unwind_maps *space, const struct unwind_table_ref *ref,
                         int64_t now_ns)
{
    struct rule_uses *uses = &space->uses[ref->first_chunk];
    if (!uses->places)
        return;
    wait_for(space, (struct waiting){.since_ns = now_ns, .kind = WAITING_RULES, .uses = *uses});
    *uses = (struct rule_uses){0};
    for (uint32_t i = 0; i < ref->chunk_count; i++) {
        const struct unwind_chunk *chunk = &space->memory.chunks[ref->first_chunk + i];
        if (has_rows(chunk))
            wait_for(space, (struct waiting){.since_ns = now_ns,
                                             .kind = WAITING_BYTES,
                                             .shard = chunk->shard,
                                             .start = chunk->groups,
                                             .size = chunk->bytes});
    }
}

enum err_code unwind_maps_fill(struct unwind_maps *space, const struct unwind_table_ref *ref,
                               const struct unwind_table *table, int64_t now_ns, struct err *err)
{
    const uint32_t count = ref->chunk_count;
    if (table->start != ref->start || table->facts.chunk_count != count)
        return err_set(err, ERR_INVALID, "the file has changed since its table was planned");
    arena_auto arena = arena_create();
    uint16_t *places = arena_new_raw(arena, uint16_t, table->facts.rule_count);
    struct unwind_chunk *chunks = arena_new(arena, struct unwind_chunk, count);
    struct holding *holding = &space->holdings[ref->first_chunk];
    const uint64_t bytes = rows_bytes(table);
    const bool is_counted = is_counted_with(space, bytes);
    if (!may_take(space, holding->owner, bytes, holding->bytes))
        return refuse(space, "so large a table of this owner", err);
    struct rule_uses uses = take_rules(space, holding->owner, table, places);
    if (!copy_chunks(space, table, places, chunks)) {
        give_rules(space, &uses);
        return refuse(space, "a table", err);
    }
    let_old_wait(space, ref, now_ns);
    space->uses[ref->first_chunk] = uses;
    owner_usage_take(&space->held, holding->owner, holding->bytes);
    holding->bytes = is_counted && holding->owner ? (uint32_t)bytes : 0;
    owner_usage_add(&space->held, holding->owner, holding->bytes);
    for (uint32_t i = 0; i < count; i++)
        publish_chunk(&space->memory.chunks[ref->first_chunk + i], &chunks[i]);
    return ERR_NONE;
}

enum unwind_lack unwind_maps_lack(const struct unwind_maps *space,
                                  const struct unwind_table_ref *ref)
{
    const struct rule_uses *uses = &space->uses[ref->first_chunk];
    if (!ref->chunk_count || uses->lacking == 0)
        return UNWIND_LACKS_NOTHING;
    if (uses->lacking > unwind_rules_largest_share())
        return UNWIND_LACKS_FOR_GOOD;
    const uint64_t owner = space->holdings[ref->first_chunk].owner;
    return uses->lacking > unwind_rules_share(space->rules, owner).left ||
                   uses->lacking_pairs > unwind_rules_pairs(space->rules)
               ? UNWIND_LACKS_NOW
               : UNWIND_LACKS_NO_MORE;
}

enum err_code unwind_maps_add_table(struct unwind_maps *space, const struct unwind_table *table,
                                    struct unwind_table_ref *ret_ref, struct err *err)
{
    struct unwind_table_ref ref;
    if (unwind_maps_reserve(space, 0, table->start, table->facts.chunk_count, &ref, err))
        return err->code;
    if (unwind_maps_fill(space, &ref, table, 0, err)) {
        free_ranges_give(&space->chunks, ref.first_chunk, ref.chunk_count);
        return err->code;
    }
    *ret_ref = ref;
    return ERR_NONE;
}

void unwind_maps_remove_table(struct unwind_maps *space, const struct unwind_table_ref *ref,
                              int64_t now_ns)
{
    if (!ref->chunk_count)
        return;
    wait_for(space, (struct waiting){.since_ns = now_ns,
                                     .kind = WAITING_CHUNKS,
                                     .start = ref->first_chunk,
                                     .size = ref->chunk_count});
    for (uint32_t i = 0; i < ref->chunk_count; i++) {
        const struct unwind_chunk *chunk = &space->memory.chunks[ref->first_chunk + i];
        space->waiting_bytes += has_rows(chunk) ? chunk->bytes : 0;
    }
}

static uint32_t run_bytes(uint32_t count)
{
    return count * (uint32_t)(sizeof(uint64_t) + sizeof(struct unwind_mapping));
}

enum err_code unwind_maps_put_run(struct unwind_maps *space, uint64_t owner, uint32_t dropped,
                                  const uint64_t *starts, const struct unwind_mapping *mappings,
                                  uint32_t count, struct unwind_run *ret_run, struct err *err)
{
    struct unwind_run run = {.count = count};
    if (++space->generation == 0)
        space->generation = 1;
    run.generation = space->generation;
    if (count > UNWIND_RUN_MAX)
        return err_set(err, ERR_TOO_LARGE, "%u executable mappings are more than %u", count,
                       UNWIND_RUN_MAX);
    if (count) {
        if (!may_take(space, owner, run_bytes(count), run_bytes(dropped)) ||
            !take_bytes(space, run_bytes(count), &run.shard, &run.offset))
            return refuse(space, "the mappings of a process", err);
        const uint32_t behind = run.offset + count * (uint32_t)sizeof *starts;
        /* Seen whole by who finds the run: the kernel puts it into its map with a store-release. */
        if (!write_bytes(space, run.shard, run.offset, starts, count * sizeof *starts) ||
            !write_bytes(space, run.shard, behind, mappings, count * sizeof *mappings)) {
            free_ranges_give(&space->shards[run.shard].ranges, run.offset,
                             round_up(run_bytes(count)));
            return refuse(space, "the mappings of a process", err);
        }
    }
    owner_usage_add(&space->held, owner, run_bytes(count));
    *ret_run = run;
    return ERR_NONE;
}

void unwind_maps_drop_run(struct unwind_maps *space, uint64_t owner, const struct unwind_run *run,
                          int64_t now_ns)
{
    owner_usage_take(&space->held, owner, run_bytes(run->count));
    if (run->count)
        wait_for(space, (struct waiting){.since_ns = now_ns,
                                         .kind = WAITING_BYTES,
                                         .shard = run->shard,
                                         .start = run->offset,
                                         .size = run_bytes(run->count)});
}

static void give_back_chunks(struct unwind_maps *space, uint32_t first, uint32_t count)
{
    const struct unwind_chunk *chunks = &space->memory.chunks[first];
    for (uint32_t i = 0; i < count; i++)
        space->waiting_bytes -= has_rows(&chunks[i]) ? chunks[i].bytes : 0;
    give_rows(space, chunks, count);
    give_rules(space, &space->uses[first]);
    owner_usage_take(&space->held, space->holdings[first].owner, space->holdings[first].bytes);
    space->holdings[first] = (struct holding){0};
    free_ranges_give(&space->chunks, first, count);
}

static void give_back(struct unwind_maps *space, struct waiting *waiting)
{
    switch (waiting->kind) {
    case WAITING_BYTES:
        free_ranges_give(&space->shards[waiting->shard].ranges, waiting->start, waiting->size);
        space->waiting_bytes -= waiting->size;
        break;
    case WAITING_CHUNKS:
        give_back_chunks(space, waiting->start, waiting->size);
        break;
    case WAITING_RULES:
        give_rules(space, &waiting->uses);
        break;
    }
}

void unwind_maps_reclaim(struct unwind_maps *space, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < space->waiting_count; i++) {
        if (now_ns - space->waiting[i].since_ns > UNWIND_GRACE_NS)
            give_back(space, &space->waiting[i]);
        else
            space->waiting[kept++] = space->waiting[i];
    }
    space->waiting_count = kept;
    drop_free_shards(space);
}

void unwind_maps_stats_get(const struct unwind_maps *space, struct unwind_maps_stats *ret_stats)
{
    struct unwind_maps_stats stats = {
        .shard_count = space->shard_count,
        .chunk_count = UNWIND_CHUNK_COUNT - space->chunks.free_size,
        .rule_count = unwind_rules_used(space->rules),
        .refused_count = space->refused_count,
        .shard_bytes = (uint64_t)space->shard_count * UNWIND_SHARD_BYTES,
        .waiting_bytes = space->waiting_bytes,
    };
    stats.used_bytes = used_bytes(space);
    *ret_stats = stats;
}
