#include "agent/unwind/unwind_table.h"

#include "agent/unwind/cfi_rules.h"
#include "agent/unwind/go_frames.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <assert.h>

enum {
    CHUNK_BLOCKS = UNWIND_CHUNK_BYTES / UNWIND_BLOCK_BYTES,
};

/*
 * Functions come in ascending order, and so do the rows of each. A row is added only where the rule
 * changes; a gap after a function gets a row with UNWIND_RULE_NONE. One chunk at a time grows in
 * scratch; it is copied to the table when a row of another chunk comes.
 *
 * Example: a function from 0x1000 to 0x1040 with rule 5 and, from 0x1004 on, rule 9, then one from
 * 0x1080 to 0x10C0 with rule 5. Rows: 0x1000 5, 0x1004 9, 0x1040 NONE, 0x1080 5, 0x10C0 NONE. If
 * the second function began at 0x1048, the gap would be alignment (UNWIND_TABLE_GAP_BYTES), and
 * rule 9 would hold up to it.
 */
struct builder {
    struct unwind_table *table;
    struct cfi_rules rules;
    struct cfi_rule last_rule; /* the rule that was looked up last, and its number: a cache */
    uint32_t last_number;
    uint32_t current_rule; /* the rule of the last row: it holds up to the next one */
    bool is_open;          /* scratch contains a chunk */
    uint32_t number;       /* the number of that chunk */
    uint64_t last_offset;  /* the offset of its last row */
    uint64_t covered_end;  /* the end of the last function */
    bool has_function;
    bool is_left_out; /* the function is beyond the last chunk */
    struct unwind_table_chunk scratch;
    uint32_t row_capacity;
    struct go_frames go;
    struct eh_frame_sink go_sink;
};

static void close_chunk(struct builder *builder, uint32_t end_block)
{
    struct unwind_table *table = builder->table;
    struct unwind_table_chunk *scratch = &builder->scratch;
    struct unwind_table_chunk *chunk = &table->chunks[builder->number];
    builder->is_open = false;
    if (table->facts.bytes > UNWIND_TABLE_BYTES_MAX) {
        table->facts.left_out_count++;
        return;
    }
    while (scratch->first_block + scratch->block_count < end_block)
        scratch->first_rows[++scratch->block_count] = scratch->row_count;
    *chunk = *scratch;
    uint8_t *bytes = mem_alloc(unwind_table_chunk_bytes(chunk), 1);
    chunk->first_rows = (uint32_t *)(void *)bytes;
    chunk->rules = (uint16_t *)(chunk->first_rows + chunk->block_count + 1);
    chunk->addresses = (uint8_t *)(chunk->rules + chunk->row_count);
    memcpy(chunk->first_rows, scratch->first_rows, (chunk->block_count + 1) * sizeof(uint32_t));
    memcpy(chunk->rules, scratch->rules, chunk->row_count * sizeof(uint16_t));
    memcpy(chunk->addresses, scratch->addresses, chunk->row_count);
    table->facts.row_count += chunk->row_count;
    table->facts.bytes += unwind_table_chunk_bytes(chunk);
}

/* The arrays share a capacity. It starts at 2^14 rows, far above the first capacity of
 * lib/base/vec.h, because all chunks of a table are collected in them. */
static void grow_rows(struct builder *builder)
{
    struct unwind_table_chunk *scratch = &builder->scratch;
    builder->row_capacity = builder->row_capacity ? builder->row_capacity * 2 : 1 << 14;
    scratch->rules = mem_resize(scratch->rules, builder->row_capacity, sizeof(uint16_t));
    scratch->addresses = mem_resize(scratch->addresses, builder->row_capacity, 1);
}

static void open_chunk(struct builder *builder, uint32_t number, uint32_t block)
{
    struct unwind_table_chunk *scratch = &builder->scratch;
    builder->is_open = true;
    builder->number = number;
    builder->last_offset = UINT64_MAX;
    scratch->first_block = block;
    scratch->block_count = 0;
    scratch->row_count = 0;
    scratch->first_rows[0] = 0;
}

/* Adds a row to the open chunk, at or after its last one. */
static void push_row(struct builder *builder, uint32_t offset, uint32_t rule)
{
    struct unwind_table_chunk *scratch = &builder->scratch;
    uint32_t block = (offset >> UNWIND_BLOCK_SHIFT) - scratch->first_block;
    if (offset == builder->last_offset) {
        scratch->rules[scratch->row_count - 1] = (uint16_t)rule;
        return;
    }
    if (scratch->row_count == UNWIND_TABLE_CHUNK_ROWS_MAX) {
        builder->table->facts.left_out_count++;
        scratch->rules[scratch->row_count - 1] = UNWIND_RULE_FULL;
        return;
    }
    if (scratch->row_count == builder->row_capacity)
        grow_rows(builder);
    /* first_rows[block_count] is the end of the last block and therefore the start of the next one.
     */
    while (scratch->block_count <= block)
        scratch->first_rows[++scratch->block_count] = scratch->row_count;
    scratch->rules[scratch->row_count] = (uint16_t)rule;
    scratch->addresses[scratch->row_count] = (uint8_t)offset;
    scratch->first_rows[scratch->block_count] = ++scratch->row_count;
    builder->last_offset = offset;
}

/* Closes chunks up to the wanted one and opens it. A rule that holds at the end of a chunk also
 * holds at the start of the next one, which gets a row there. */
static void reach_chunk(struct builder *builder, uint32_t number, uint32_t block)
{
    bool is_covered = builder->current_rule != UNWIND_RULE_NONE;
    while (builder->is_open && builder->number < number) {
        uint32_t next = is_covered ? builder->number + 1 : number;
        close_chunk(builder, is_covered ? CHUNK_BLOCKS : 0);
        open_chunk(builder, next, is_covered ? 0 : block);
        if (is_covered)
            push_row(builder, 0, builder->current_rule);
    }
    if (!builder->is_open)
        open_chunk(builder, number, block);
}

static void add_row(struct builder *builder, uint64_t address, uint32_t rule)
{
    if (rule == builder->current_rule)
        return;
    uint64_t offset = address - builder->table->start;
    uint32_t within = (uint32_t)offset & (UNWIND_CHUNK_BYTES - 1);
    reach_chunk(builder, (uint32_t)(offset >> UNWIND_CHUNK_SHIFT), within >> UNWIND_BLOCK_SHIFT);
    push_row(builder, within, rule);
    builder->current_rule = rule;
}

static void end_function(struct builder *builder)
{
    uint64_t limit =
        builder->table->start + ((uint64_t)builder->table->facts.chunk_count << UNWIND_CHUNK_SHIFT);
    if (builder->has_function && builder->covered_end < limit)
        add_row(builder, builder->covered_end, UNWIND_RULE_NONE);
    builder->has_function = false;
}

static void take_function(void *context, uint64_t start, uint64_t end)
{
    struct builder *builder = context;
    if (builder->has_function && start - builder->covered_end > UNWIND_TABLE_GAP_BYTES)
        end_function(builder);
    uint64_t span = (uint64_t)builder->table->facts.chunk_count << UNWIND_CHUNK_SHIFT;
    builder->is_left_out = end - builder->table->start > span;
    if (builder->is_left_out) {
        builder->table->facts.left_out_count++;
        return;
    }
    builder->has_function = true;
    builder->covered_end = end;
}

static void take_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    struct builder *builder = context;
    if (builder->is_left_out)
        return;
    if (!cfi_rule_equal(rule, &builder->last_rule)) {
        builder->last_rule = *rule;
        builder->last_number = cfi_rules_add(&builder->rules, rule);
    }
    if (rule->rule.cfa == UNWIND_CFA_STOP)
        builder->table->facts.stop_rows[rule->rule.cfa_offset]++;
    add_row(builder, address, builder->last_number);
}

static void take_go_function(void *context, uint64_t start, uint64_t end)
{
    struct builder *builder = context;
    builder->table->facts.go_function_count++;
    take_function(builder, start, end);
}

/* Merges the functions of Go's table, which ascend too, with those of .eh_frame: C code of a Go
 * program comes before or after Go's own. */
static void take_function_in_order(void *context, uint64_t start, uint64_t end)
{
    struct builder *builder = context;
    go_frames_until(&builder->go, builder->covered_end, start, &builder->go_sink);
    take_function(builder, start, end);
}

/* The number of chunks that cover all code of the file. */
static void plan_chunks(const struct elf_frames *frames, uint64_t *ret_start,
                        uint32_t *ret_chunk_count)
{
    const struct elf_extent *last = &frames->code[frames->code_count - 1];
    const uint64_t start = frames->code[0].address & ~(uint64_t)(UNWIND_BLOCK_BYTES - 1);
    uint64_t end = last->address + last->bytes;
    for (uint32_t i = 0; i < frames->code_count; i++) {
        const struct elf_extent *code = &frames->code[i];
        end = code->address + code->bytes > end ? code->address + code->bytes : end;
    }
    const uint64_t count = (end - start + UNWIND_CHUNK_BYTES - 1) >> UNWIND_CHUNK_SHIFT;
    *ret_start = start;
    *ret_chunk_count = count < UNWIND_TABLE_CHUNKS_MAX ? (uint32_t)count : UNWIND_TABLE_CHUNKS_MAX;
}

static enum err_code open_frames(int fd, const char *path, struct elf_frames *ret_frames,
                                 struct err *err)
{
    if (elf_frames_open(fd, path, ret_frames, err))
        return err->code;
    return ret_frames->code_count
               ? ERR_NONE
               : err_set(err, ERR_NOT_FOUND, "%s has no executable segment", path);
}

enum err_code unwind_table_plan(int fd, const char *path, uint64_t *ret_start,
                                uint32_t *ret_chunk_count, struct err *err)
{
    struct elf_frames frames;
    if (open_frames(fd, path, &frames, err))
        return err->code;
    plan_chunks(&frames, ret_start, ret_chunk_count);
    return ERR_NONE;
}

static enum err_code build_rows(struct builder *builder, const struct elf_frames *frames,
                                struct read_budget *budget, struct err *err)
{
    struct eh_frame_sink sink = {take_function_in_order, take_row, builder, budget};
    struct unwind_table *table = builder->table;
    builder->go_sink = (struct eh_frame_sink){take_go_function, take_row, builder, budget};
    (void)go_frames_open(frames, &builder->go);
    cfi_rules_init(&builder->rules, UNWIND_TABLE_RULES_MAX);
    builder->scratch.first_rows = mem_new(uint32_t, CHUNK_BLOCKS + 1);
    enum err_code code = eh_frame_read(frames, &sink, &table->facts.frames, err);
    if (!code || code == ERR_NOT_FOUND)
        go_frames_until(&builder->go, builder->covered_end, UINT64_MAX, &builder->go_sink);
    go_frames_close(&builder->go);
    if (code == ERR_NOT_FOUND && table->facts.go_function_count) {
        table->facts.frames.section_bytes = frames->go_table.bytes;
        code = ERR_NONE;
    }
    end_function(builder);
    if (builder->is_open)
        close_chunk(builder, builder->current_rule == UNWIND_RULE_NONE ? 0 : CHUNK_BLOCKS);
    table->rules = builder->rules.list;
    table->facts.rule_count = builder->rules.count;
    builder->rules.list = NULL;
    cfi_rules_fini(&builder->rules);
    mem_free(builder->scratch.first_rows);
    mem_free(builder->scratch.rules);
    mem_free(builder->scratch.addresses);
    return code;
}

enum err_code unwind_table_build(int fd, const char *path, struct read_budget *budget,
                                 struct unwind_table **ret_table, struct err *err)
{
    struct elf_frames frames;
    if (open_frames(fd, path, &frames, err))
        return err->code;
    struct unwind_table *table = mem_new(struct unwind_table, 1);
    struct builder builder = {.table = table};
    table->machine = frames.machine;
    plan_chunks(&frames, &table->start, &table->facts.chunk_count);
    table->chunks = mem_new(struct unwind_table_chunk, table->facts.chunk_count);
    if (build_rows(&builder, &frames, budget, err)) {
        unwind_table_destroy(table);
        return err->code;
    }
    *ret_table = table;
    return ERR_NONE;
}

void unwind_table_destroy(struct unwind_table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < table->facts.chunk_count; i++)
        mem_free(table->chunks[i].first_rows); /* the one allocation of a chunk */
    mem_free(table->chunks);
    mem_free(table->rules);
    mem_free(table);
}

/* The row that holds at an offset in the chunk; UINT32_MAX: none. */
static uint32_t find_row(const struct unwind_table_chunk *chunk, uint32_t offset)
{
    uint32_t block = (offset >> UNWIND_BLOCK_SHIFT) - chunk->first_block;
    if (block >= chunk->block_count)
        return UINT32_MAX;
    uint32_t at = chunk->first_rows[block];
    while (at < chunk->first_rows[block + 1] && chunk->addresses[at] <= (uint8_t)offset)
        at++;
    return at - 1;
}

const struct cfi_rule *unwind_table_find(const struct unwind_table *table, uint64_t address)
{
    uint64_t offset = address - table->start;
    uint64_t number = offset >> UNWIND_CHUNK_SHIFT;
    if (number >= table->facts.chunk_count)
        return &table->rules[UNWIND_RULE_NONE];
    const struct unwind_table_chunk *chunk = &table->chunks[number];
    uint32_t row = find_row(chunk, (uint32_t)offset & (UNWIND_CHUNK_BYTES - 1));
    return &table->rules[row == UINT32_MAX ? UNWIND_RULE_NONE : chunk->rules[row]];
}

static void each_in_chunk(const struct unwind_table *table, uint32_t number, cfi_row_function *row,
                          void *context)
{
    const struct unwind_table_chunk *chunk = &table->chunks[number];
    uint64_t start = table->start + ((uint64_t)number << UNWIND_CHUNK_SHIFT);
    for (uint32_t block = 0; block < chunk->block_count; block++) {
        uint64_t base = start + ((uint64_t)(chunk->first_block + block) << UNWIND_BLOCK_SHIFT);
        for (uint32_t i = chunk->first_rows[block]; i < chunk->first_rows[block + 1]; i++)
            row(context, base + chunk->addresses[i], &table->rules[chunk->rules[i]]);
    }
}

void unwind_table_each(const struct unwind_table *table, cfi_row_function *row, void *context)
{
    for (uint32_t i = 0; i < table->facts.chunk_count; i++)
        each_in_chunk(table, i, row, context);
}
