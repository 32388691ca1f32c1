#include "agent/unwind_space.h"

#include "agent/cfi_rules.h"
#include "agent/free_ranges.h"
#include "lib/base/mem.h"

#include <assert.h>

static_assert(sizeof(struct unwind_rule) == 8 && sizeof(struct unwind_rule_extra) == 8,
              "a rule and its extra are two records of the same array");
static_assert(sizeof(struct unwind_mapping) == 24 && sizeof(struct unwind_chunk) == 32,
              "shared with bpf/");

struct shard {
    struct free_ranges ranges;
};

/* Removed, and perhaps still read. */
struct waiting {
    int64_t since_ns;
    bool is_chunks; /* chunk numbers, else bytes of a shard */
    uint32_t shard;
    uint32_t start;
    uint32_t size;
};

struct unwind_space {
    struct unwind_memory memory;
    struct shard *shards;
    uint32_t shard_count;
    struct free_ranges chunks;
    struct cfi_rules rules; /* all that were ever added, in the order of numbers below */
    uint16_t *rule_places;  /* of each: its record in memory.rules */
    uint32_t record_count;
    struct waiting *waiting;
    size_t waiting_count;
    size_t waiting_capacity;
    uint64_t waiting_bytes;
    uint32_t refused_count;
};

/* The place of a rule among the records that the walker sees. */
static uint16_t publish_rule(struct unwind_space *space, const struct cfi_rule *rule)
{
    uint32_t known = space->rules.count;
    uint32_t number = cfi_rules_add(&space->rules, rule);
    if (number < known)
        return space->rule_places[number];
    uint32_t records = cfi_rule_has_extra(&rule->rule) ? 2 : 1;
    uint32_t place = space->record_count;
    if (place + records > UNWIND_RULE_COUNT) {
        space->rule_places[number] = UNWIND_RULE_FULL;
        return UNWIND_RULE_FULL;
    }
    space->memory.rules[place] = rule->rule;
    if (records == 2)
        memcpy(&space->memory.rules[place + 1], &rule->extra, sizeof rule->extra);
    space->record_count += records;
    space->rule_places[number] = (uint16_t)place;
    return (uint16_t)place;
}

struct unwind_space *unwind_space_create(const struct unwind_memory *memory)
{
    struct unwind_space *space = mem_new(struct unwind_space, 1);
    space->memory = *memory;
    if (space->memory.shard_limit > UNWIND_SHARD_COUNT)
        space->memory.shard_limit = UNWIND_SHARD_COUNT;
    space->shards = mem_new(struct shard, UNWIND_SHARD_COUNT);
    space->rule_places = mem_new(uint16_t, UNWIND_RULE_COUNT);
    free_ranges_init(&space->chunks, UNWIND_CHUNK_COUNT);
    cfi_rules_init(&space->rules, UNWIND_RULE_COUNT);
    for (uint32_t i = 0; i < UNWIND_RULE_FIXED_COUNT; i++) {
        space->memory.rules[i] = space->rules.list[i].rule;
        space->rule_places[i] = (uint16_t)i;
    }
    space->record_count = UNWIND_RULE_FIXED_COUNT;
    return space;
}

void unwind_space_destroy(struct unwind_space *space)
{
    if (!space)
        return;
    for (uint32_t i = 0; i < space->shard_count; i++)
        free_ranges_fini(&space->shards[i].ranges);
    free_ranges_fini(&space->chunks);
    cfi_rules_fini(&space->rules);
    mem_free(space->shards);
    mem_free(space->rule_places);
    mem_free(space->waiting);
    mem_free(space);
}

static bool add_shard(struct unwind_space *space)
{
    if (space->shard_count == space->memory.shard_limit)
        return false;
    if (!space->memory.shard_create(space->memory.context, space->shard_count))
        return false;
    free_ranges_init(&space->shards[space->shard_count++].ranges, UNWIND_SHARD_BYTES);
    return true;
}

static uint32_t round_up(uint64_t bytes)
{
    return (uint32_t)((bytes + 7) & ~(uint64_t)7);
}

/* Room for bytes, at most a shard; false when there is none. */
static bool take_bytes(struct unwind_space *space, uint64_t bytes, uint32_t *ret_shard,
                       uint32_t *ret_offset)
{
    for (uint32_t i = 0;; i++) {
        if (i == space->shard_count && !add_shard(space))
            return false;
        int64_t offset = free_ranges_take(&space->shards[i].ranges, round_up(bytes));
        if (offset == FREE_RANGES_NONE)
            continue;
        *ret_shard = i;
        *ret_offset = (uint32_t)offset;
        return true;
    }
}

static bool write_bytes(struct unwind_space *space, uint32_t shard, uint32_t offset,
                        const void *bytes, size_t size)
{
    return space->memory.shard_write(space->memory.context, shard, offset, bytes, size);
}

static void wait_for(struct unwind_space *space, struct waiting waiting)
{
    if (space->waiting_count == space->waiting_capacity) {
        space->waiting_capacity = space->waiting_capacity ? space->waiting_capacity * 2 : 64;
        space->waiting =
            mem_resize(space->waiting, space->waiting_capacity, sizeof *space->waiting);
    }
    space->waiting[space->waiting_count++] = waiting;
    if (!waiting.is_chunks)
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

static bool copy_chunk(struct unwind_space *space, const struct unwind_table_chunk *from,
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

static void give_rows(struct unwind_space *space, const struct unwind_chunk *chunks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (has_rows(&chunks[i]))
            free_ranges_give(&space->shards[chunks[i].shard].ranges, chunks[i].groups,
                             chunks[i].bytes);
    }
}

static enum err_code refuse(struct unwind_space *space, const char *what, struct err *err)
{
    space->refused_count++;
    return err_set(err, ERR_LIMIT, "there is no room for %s: %u shards of 4 MiB are in use", what,
                   space->shard_count);
}

enum err_code unwind_space_reserve(struct unwind_space *space, uint64_t start, uint32_t chunk_count,
                                   struct unwind_table_ref *ret_ref, struct err *err)
{
    const int64_t first = free_ranges_take(&space->chunks, chunk_count);
    if (first == FREE_RANGES_NONE)
        return refuse(space, "the chunks of a table", err);
    memset(&space->memory.chunks[first], 0, chunk_count * sizeof space->memory.chunks[0]);
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

enum err_code unwind_space_fill(struct unwind_space *space, const struct unwind_table_ref *ref,
                                const struct unwind_table *table, struct err *err)
{
    const uint32_t count = ref->chunk_count;
    if (table->start != ref->start || table->facts.chunk_count != count)
        return err_set(err, ERR_INVALID, "the file has changed since its table was planned");
    arena_auto arena = arena_create();
    uint16_t *places = arena_new_raw(arena, uint16_t, table->facts.rule_count);
    struct unwind_chunk *chunks = arena_new(arena, struct unwind_chunk, count);
    for (uint32_t i = 0; i < table->facts.rule_count; i++)
        places[i] = publish_rule(space, &table->rules[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (!copy_chunk(space, &table->chunks[i], places, &chunks[i])) {
            give_rows(space, chunks, i); /* nobody has seen them */
            return refuse(space, "a table", err);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        publish_chunk(&space->memory.chunks[ref->first_chunk + i], &chunks[i]);
    return ERR_NONE;
}

enum err_code unwind_space_add_table(struct unwind_space *space, const struct unwind_table *table,
                                     struct unwind_table_ref *ret_ref, struct err *err)
{
    struct unwind_table_ref ref;
    if (unwind_space_reserve(space, table->start, table->facts.chunk_count, &ref, err))
        return err->code;
    if (unwind_space_fill(space, &ref, table, err)) {
        free_ranges_give(&space->chunks, ref.first_chunk, ref.chunk_count);
        return err->code;
    }
    *ret_ref = ref;
    return ERR_NONE;
}

void unwind_space_remove_table(struct unwind_space *space, const struct unwind_table_ref *ref,
                               int64_t now_ns)
{
    if (!ref->chunk_count)
        return;
    wait_for(space, (struct waiting){.since_ns = now_ns,
                                     .is_chunks = true,
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

enum err_code unwind_space_put_run(struct unwind_space *space, const uint64_t *starts,
                                   const struct unwind_mapping *mappings, uint32_t count,
                                   struct unwind_run *ret_run, struct err *err)
{
    struct unwind_run run = {.count = count};
    if (count > UNWIND_RUN_MAX)
        return err_set(err, ERR_TOO_LARGE, "%u executable mappings are more than %u", count,
                       UNWIND_RUN_MAX);
    if (count) {
        if (!take_bytes(space, run_bytes(count), &run.shard, &run.offset))
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
    *ret_run = run;
    return ERR_NONE;
}

void unwind_space_drop_run(struct unwind_space *space, const struct unwind_run *run, int64_t now_ns)
{
    if (run->count)
        wait_for(space, (struct waiting){.since_ns = now_ns,
                                         .shard = run->shard,
                                         .start = run->offset,
                                         .size = run_bytes(run->count)});
}

static void give_back(struct unwind_space *space, const struct waiting *waiting)
{
    if (!waiting->is_chunks) {
        free_ranges_give(&space->shards[waiting->shard].ranges, waiting->start, waiting->size);
        space->waiting_bytes -= waiting->size;
        return;
    }
    for (uint32_t i = 0; i < waiting->size; i++) {
        const struct unwind_chunk *chunk = &space->memory.chunks[waiting->start + i];
        space->waiting_bytes -= has_rows(chunk) ? chunk->bytes : 0;
    }
    give_rows(space, &space->memory.chunks[waiting->start], waiting->size);
    free_ranges_give(&space->chunks, waiting->start, waiting->size);
}

void unwind_space_reclaim(struct unwind_space *space, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < space->waiting_count; i++) {
        if (now_ns - space->waiting[i].since_ns > UNWIND_GRACE_NS)
            give_back(space, &space->waiting[i]);
        else
            space->waiting[kept++] = space->waiting[i];
    }
    space->waiting_count = kept;
}

void unwind_space_stats_get(const struct unwind_space *space, struct unwind_space_stats *ret_stats)
{
    struct unwind_space_stats stats = {
        .shard_count = space->shard_count,
        .chunk_count = UNWIND_CHUNK_COUNT - space->chunks.free_size,
        .rule_count = space->record_count,
        .refused_count = space->refused_count,
        .shard_bytes = (uint64_t)space->shard_count * UNWIND_SHARD_BYTES,
        .waiting_bytes = space->waiting_bytes,
    };
    stats.used_bytes = stats.shard_bytes;
    for (uint32_t i = 0; i < space->shard_count; i++)
        stats.used_bytes -= space->shards[i].ranges.free_size;
    *ret_stats = stats;
}
