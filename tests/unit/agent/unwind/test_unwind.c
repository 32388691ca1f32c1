#include "tests/unit/test.h"

#include "agent/unwind/cfi_rules.h"
#include "agent/unwind/free_ranges.h"
#include "agent/unwind/unwind_maps.h"
#include "agent/unwind/unwind_names.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The unwinder in user space: the memory of the process is an array of words. */
struct unwind_source {
    struct unwind_rule *rules;
    struct unwind_chunk *chunks;
    struct unwind_memo *memos;
    uint8_t *shards[4];
    const uint64_t *stack;
    uint64_t stack_start;
    uint64_t stack_bytes;
};

static const __u8 *unwind_source_shard(struct unwind_source *source, __u32 shard)
{
    return shard < 4 ? source->shards[shard] : NULL;
}
static const struct unwind_rule *unwind_source_rule(struct unwind_source *source, __u32 rule)
{
    return &source->rules[rule % UNWIND_RULE_COUNT];
}
static const struct unwind_chunk *unwind_source_chunk(struct unwind_source *source, __u32 chunk)
{
    return &source->chunks[chunk];
}
static struct unwind_memo *unwind_source_memo(struct unwind_source *source, __u32 memo)
{
    return &source->memos[memo];
}
static int unwind_source_read(struct unwind_source *source, void *to, __u32 size, __u64 address)
{
    uint64_t into = address - source->stack_start;
    if (into > source->stack_bytes || size > source->stack_bytes - into)
        return -1;
    memcpy(to, (const uint8_t *)source->stack + into, size);
    return 0;
}

#include "bpf/unwind_core.h"

enum { LOAD_BIAS = 0x10000000, STACK = 0x70000000 };

struct test_unwinder {
    struct unwind_source source;
    struct unwind_maps *maps;
    struct unwind_state state;
};

static bool create_shard(void *context, uint32_t index)
{
    struct unwind_source *source = context;
    source->shards[index] = mem_alloc(UNWIND_SHARD_BYTES, 1);
    return true;
}

static void destroy_shard(void *context, uint32_t index)
{
    struct unwind_source *source = context;
    mem_free(source->shards[index]);
    source->shards[index] = NULL;
}

static bool write_shard(void *context, uint32_t index, uint32_t offset, const void *bytes,
                        size_t size)
{
    struct unwind_source *source = context;
    memcpy(source->shards[index] + offset, bytes, size);
    return true;
}

static struct test_unwinder *create_unwinder(uint32_t shard_limit)
{
    struct test_unwinder *unwinder = mem_new(struct test_unwinder, 1);
    unwinder->source.rules = mem_new(struct unwind_rule, UNWIND_RULE_COUNT + 1);
    unwinder->source.chunks = mem_new(struct unwind_chunk, UNWIND_CHUNK_COUNT);
    unwinder->source.memos = mem_new(struct unwind_memo, UNWIND_MEMO_COUNT);
    unwinder->maps = unwind_maps_create(&(struct unwind_memory){.rules = unwinder->source.rules,
                                                                .chunks = unwinder->source.chunks,
                                                                .shard_create = create_shard,
                                                                .shard_destroy = destroy_shard,
                                                                .shard_write = write_shard,
                                                                .context = &unwinder->source,
                                                                .shard_limit = shard_limit});
    return unwinder;
}

static void destroy_unwinder(struct test_unwinder *unwinder)
{
    unwind_maps_destroy(unwinder->maps);
    mem_free(unwinder->source.rules);
    mem_free(unwinder->source.chunks);
    mem_free(unwinder->source.memos);
    for (size_t i = 0; i < 4; i++)
        mem_free(unwinder->source.shards[i]);
    mem_free(unwinder);
}

/* A table of one chunk, from 0x1000 on, with a rule every 256 bytes. */
static struct unwind_table *make_table(const struct cfi_rule *rules, uint32_t count)
{
    struct unwind_table *table = mem_new(struct unwind_table, 1);
    table->machine = EM_X86_64;
    table->start = 0x1000;
    table->facts.chunk_count = 1;
    table->chunks = mem_new(struct unwind_table_chunk, 1);
    table->facts.rule_count = UNWIND_RULE_FIXED_COUNT + count;
    table->rules = mem_new(struct cfi_rule, table->facts.rule_count);
    table->rules[UNWIND_RULE_ROOT] = cfi_rule_stop(UNWIND_STOP_ROOT);
    table->rules[UNWIND_RULE_FULL] = cfi_rule_stop(UNWIND_STOP_RULES_FULL);
    struct unwind_table_chunk *chunk = table->chunks;
    chunk->block_count = chunk->row_count = count;
    chunk->first_rows = mem_alloc(unwind_table_chunk_bytes(chunk), 1);
    chunk->rules = (uint16_t *)(chunk->first_rows + count + 1);
    chunk->addresses = (uint8_t *)(chunk->rules + count);
    for (uint32_t i = 0; i < count; i++) {
        table->rules[UNWIND_RULE_FIXED_COUNT + i] = rules[i];
        chunk->first_rows[i] = i;
        chunk->rules[i] = (uint16_t)(UNWIND_RULE_FIXED_COUNT + i);
    }
    chunk->first_rows[count] = count;
    return table;
}

/* Function I is at offset 0x1000 + 256 * I of the file. */
#define CODE(function) (LOAD_BIAS + 0x1000 + 256ULL * (function) + 16)
static uint64_t code(uint32_t function)
{
    return CODE(function);
}

static struct test_unwinder *create_unwinder_with(const struct cfi_rule *rules, uint32_t count)
{
    struct test_unwinder *unwinder = create_unwinder(4);
    struct unwind_table *table = make_table(rules, count);
    struct unwind_table_ref ref;
    struct unwind_mapping_list list;
    struct err err;
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_NONE);
    unwind_table_destroy(table);
    /* The next mapping has no table, like JIT code. */
    uint64_t starts[] = {0x1000, LOAD_BIAS, 0x50000000};
    struct unwind_mapping mappings[] = {
        {.end = 0x2000},
        {LOAD_BIAS + 0x100000, LOAD_BIAS + ref.start, ref.first_chunk, ref.chunk_count, 0},
        {.end = 0x50001000, .flags = UNWIND_MAPPING_FP}};
    assert_int_equal(
        unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings, 3, &list, &err), ERR_NONE);
    unwinder->state.sp = STACK;
    unwinder->source.stack_start = STACK;
    unwind_begin(&unwinder->state, &list, 0);
    return unwinder;
}

static void set_stack(struct test_unwinder *unwinder, const uint64_t *words, size_t count)
{
    unwinder->source.stack = words;
    unwinder->source.stack_bytes = count * sizeof *words;
}

/* Not inlined, because the compiler would otherwise warn that the copied window is larger than a
 * test's stack. */
static __attribute__((noinline)) enum unwind_stop step(struct test_unwinder *unwinder)
{
    return unwind_step(&unwinder->source, &unwinder->state);
}

static const struct cfi_rule by_sp_16 = {.rule = {.cfa = UNWIND_CFA_SP, .cfa_offset = 16}};
static const struct cfi_rule by_fp = {
    .rule = {.cfa = UNWIND_CFA_FP, .cfa_offset = 16, .fp_offset = -16, .saved = UNWIND_FP_AT_CFA}};

static void unwinds_by_stack_and_frame_pointer_to_the_root(void **state)
{
    (void)state;
    struct cfi_rule rules[] = {by_sp_16, by_fp, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 3);
    uint64_t stack[] = {0, code(1), 0, STACK + 999, code(2), 0, 0, 0};
    set_stack(unwinder, stack, 8);
    unwinder->state.pc = code(0);
    unwinder->state.fp = STACK + 24;
    assert_int_equal(unwind_address(&unwinder->state), code(0));
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwind_address(&unwinder->state), code(1) - 1);
    assert_int_equal(unwinder->state.sp, STACK + 16);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, code(2));
    assert_int_equal(unwinder->state.fp, STACK + 999);
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT);
    destroy_unwinder(unwinder);
}

static void looks_up_a_caller_at_its_call_instruction(void **state)
{
    (void)state;
    struct cfi_rule rules[] = {by_sp_16, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 2);
    /* The return address is the start of function 1: the call is the last instruction of function
     * 0. */
    uint64_t stack[] = {0, code(1) - 16, 0, code(1), 0};
    set_stack(unwinder, stack, 5);
    unwinder->state.pc = code(0);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.sp, STACK + 32);
    destroy_unwinder(unwinder);
}

/* At the end of _Unwind_RaiseException, rcx contains the address of the handler: the start of
 * function 1, like the start of a cold part of a function. */
static void the_rule_of_an_exception_handler_is_that_of_its_first_byte(void **state)
{
    (void)state;
    struct cfi_rule to_rcx = {
        .rule = {.cfa = UNWIND_CFA_SP, .saved = (UNWIND_RA_IS_HANDLER | UNWIND_RA_REGISTER) << 4},
        .extra = {.ra_offset = 2}};
    struct cfi_rule rules[] = {to_rcx, by_sp_16, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 3);
    uint64_t stack[] = {0, code(2), 0};
    set_stack(unwinder, stack, 3);
    unwinder->state.pc = code(0);
    unwinder->state.leaf[2] = code(1) - 16;
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwind_address(&unwinder->state), code(1) - 16);
    assert_false(unwinder->state.was_signal);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwind_address(&unwinder->state), code(2) - 1);
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT);
    destroy_unwinder(unwinder);
}

static void continues_from_a_signal_frame_with_all_registers(void **state)
{
    (void)state;
    struct cfi_rule signal = {.rule = {.cfa = UNWIND_CFA_SIGNAL, .cfa_offset = 40}};
    /* Like vfork: the return address is in rdi. */
    struct cfi_rule in_rdi = {.rule = {.cfa = UNWIND_CFA_SP, .saved = UNWIND_RA_REGISTER << 4},
                              .extra = {.ra_offset = 5}};
    struct cfi_rule rules[] = {by_sp_16, signal, in_rdi, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 4);
    uint64_t stack[64] = {0, code(1)};
    uint64_t *registers = &stack[2 + 5];
    registers[8] = code(3);     /* rdi */
    registers[10] = 0x1234;     /* rbp */
    registers[15] = STACK - 64; /* rsp, of another stack */
    registers[16] = code(2);
    set_stack(unwinder, stack, 64);
    unwinder->state.pc = code(0);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwind_address(&unwinder->state), code(2));
    assert_int_equal(unwinder->state.sp, STACK - 64);
    assert_int_equal(unwinder->state.fp, 0x1234);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, code(3));
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT);
    destroy_unwinder(unwinder);
}

static void unwinds_saved_stack_pointers_plt_entries_and_registers(void **state)
{
    (void)state;
    struct cfi_rule deref = {.rule = {.cfa = UNWIND_CFA_SP_DEREF, .cfa_offset = 8},
                             .extra = {.cfa_add = 16}};
    struct cfi_rule plt = {.rule = {.cfa = UNWIND_CFA_PLT, .cfa_offset = 11}};
    struct cfi_rule by_r10 = {.rule = {.cfa = UNWIND_CFA_REGISTER}, .extra = {.cfa_register = 10}};
    struct cfi_rule rules[] = {deref, plt, by_r10, cfi_rule_stop(UNWIND_STOP_ROOT)};
    uint64_t stack[] = {code(3), STACK + 16, 0, code(2), 0, 0};

    struct test_unwinder *unwinder = create_unwinder_with(rules, 4);
    set_stack(unwinder, stack, 6);
    unwinder->state.pc = code(0);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.sp, STACK + 32);
    assert_int_equal(step(unwinder), UNWIND_STOP_REGISTER); /* r10 is not known in a caller */

    unwind_begin(&unwinder->state,
                 &(struct unwind_mapping_list){unwinder->state.list.shard,
                                               unwinder->state.list.offset, 3, 0},
                 0);
    unwinder->state.sp = STACK;
    unwinder->state.pc = code(1); /* first byte of a function */
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.sp, STACK + 8);

    struct unwind_mapping_list list = unwinder->state.list;
    unwind_begin(&unwinder->state, &list, 0);
    unwinder->state.sp = STACK;
    unwinder->state.pc = code(2);
    unwinder->state.leaf[10] = STACK + 32;
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, code(2));
    assert_int_equal(unwinder->state.sp, STACK + 32);
    destroy_unwinder(unwinder);
}

/* Unwinds two frames, up to the root. */
static enum unwind_stop unwind_again(struct test_unwinder *unwinder,
                                     const struct unwind_mapping_list *list)
{
    static const uint64_t stack[] = {0, CODE(1), 0, 0, CODE(2), 0, 0, 0};
    set_stack(unwinder, stack, 8);
    unwind_begin(&unwinder->state, list, 0);
    unwinder->state.sp = STACK;
    unwinder->state.fp = STACK + 24;
    unwinder->state.pc = code(0);
    for (int i = 0; i < 2; i++) {
        const enum unwind_stop stop = step(unwinder);
        if (stop)
            return stop;
    }
    return step(unwinder);
}

static void cached_callers_are_used_for_the_same_mappings_only(void **state)
{
    (void)state;
    struct cfi_rule rules[] = {by_sp_16, by_fp, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 3);
    struct unwind_mapping_list list = unwinder->state.list, other = list;
    assert_int_not_equal(list.generation, 0);
    assert_int_equal(unwind_again(unwinder, &list), UNWIND_STOP_ROOT);
    /* Remove all rules but that of the leaf, which is not cached. */
    const struct unwind_chunk *chunk =
        &unwinder->source.chunks[unwinder->state.mapping.first_chunk];
    uint8_t *rows = unwinder->source.shards[chunk->shard];
    uint32_t begin;
    memcpy(&begin, rows + chunk->groups, sizeof begin);
    uint16_t first_row[UNWIND_GROUP_BLOCKS + 1];
    memcpy(first_row, rows + begin, sizeof first_row);
    const uint32_t second = begin + UNWIND_GROUP_HEAD_BYTES + 2 * 2 + 3u * first_row[2];
    memset(rows + second, 0, 2 + 3u * (first_row[3] - first_row[2]));
    assert_int_equal(unwind_again(unwinder, &list), UNWIND_STOP_ROOT);
    assert_true(unwinder->state.is_recalled);
    other.generation++;
    assert_int_not_equal(unwind_again(unwinder, &other), UNWIND_STOP_ROOT);
    other.generation = 0;
    assert_int_not_equal(unwind_again(unwinder, &other), UNWIND_STOP_ROOT);
    /* A memo whose words are from two writers matches no key. */
    for (uint32_t i = 0; i < UNWIND_MEMO_COUNT; i++)
        unwinder->source.memos[i].rule ^= unwinder->source.memos[i].rule ? 1 : 0;
    assert_int_not_equal(unwind_again(unwinder, &list), UNWIND_STOP_ROOT);
    destroy_unwinder(unwinder);
}

static void leaf_functions_of_go_hide_no_caller(void **state)
{
    (void)state;
    struct cfi_rule go_leaf = {.rule = {.cfa = UNWIND_CFA_LEAF}};
    struct cfi_rule rules[] = {go_leaf, go_leaf, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 3);
    uint64_t stack[] = {code(1), 0, 0, STACK + 999, code(2), 0};
    set_stack(unwinder, stack, 6);
    unwinder->state.pc = code(0);
    unwinder->state.fp = STACK + 24; /* of function 1 */
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, code(1));
    assert_int_equal(unwinder->state.sp, STACK + 8);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, code(2));
    assert_int_equal(unwinder->state.sp, STACK + 40);
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT);
    destroy_unwinder(unwinder);
}

static void follows_frame_pointers_without_a_table(void **state)
{
    (void)state;
    struct cfi_rule rules[] = {cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 1);
    uint64_t stack[] = {0, STACK + 24, 0x50000020, 0, code(0), 0};
    set_stack(unwinder, stack, 6);
    unwinder->state.pc = 0x50000010;
    unwinder->state.fp = STACK + 8;
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, 0x50000020);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, code(0));
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT);
    destroy_unwinder(unwinder);
}

static void stops_with_the_reason(void **state)
{
    (void)state;
    struct cfi_rule back = {.rule = {.cfa = UNWIND_CFA_SP, .cfa_offset = -8}};
    struct cfi_rule rules[] = {by_sp_16, back};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 2);
    struct unwind_mapping_list list = unwinder->state.list;
    uint64_t stack[] = {0, 0, 0, 0};
    set_stack(unwinder, stack, 4);
    unwinder->state.pc = code(0);
    stack[1] = 0;
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT_ZERO);
    unwinder->state.sp = STACK + 64;
    assert_int_equal(step(unwinder), UNWIND_STOP_STACK_READ);
    unwinder->state.pc = code(1);
    assert_int_equal(step(unwinder), UNWIND_STOP_NO_PROGRESS);
    unwinder->state.pc = 0x50000010; /* JIT code */
    unwinder->state.fp = STACK + 1;
    assert_int_equal(step(unwinder), UNWIND_STOP_FRAME_POINTER);
    unwinder->state.fp = 0;
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT_ZERO);
    list.shard = 3; /* an inconsistent list */
    unwind_begin(&unwinder->state, &list, 0);
    unwinder->state.pc = code(0);
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT_ZERO);
    destroy_unwinder(unwinder);
}

static void unmapped_code_counts_if_unwinding_returns_to_a_mapping(void **state)
{
    (void)state;
    struct cfi_rule rules[] = {by_sp_16, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct test_unwinder *unwinder = create_unwinder_with(rules, 2);
    uint64_t stack[] = {0, 0x40000010, STACK + 40, 0x40000020, 0, STACK + 1, code(1), 0};
    uint32_t count = 4;
    set_stack(unwinder, stack, 8);
    unwinder->state.pc = code(0);
    unwinder->state.fp = STACK + 16;
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwinder->state.pc, code(1));
    assert_int_equal(unwind_end(&unwinder->state, step(unwinder), &count), UNWIND_STOP_ROOT);
    assert_int_equal(count, 4);

    struct unwind_mapping_list list = unwinder->state.list;
    stack[6] = 0x40000030;
    unwind_begin(&unwinder->state, &list, 0);
    unwinder->state.pc = code(0);
    unwinder->state.sp = STACK;
    unwinder->state.fp = STACK + 16;
    for (int i = 0; i < 3; i++)
        assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(unwind_end(&unwinder->state, step(unwinder), &count), UNWIND_STOP_UNMAPPED);
    assert_int_equal(count, 1);
    destroy_unwinder(unwinder);
}

static void finds_each_of_many_mappings(void **state)
{
    (void)state;
    enum { COUNT = 30000 };
    struct test_unwinder *unwinder = create_unwinder(4);
    uint64_t *starts = mem_new(uint64_t, COUNT);
    struct unwind_mapping *mappings = mem_new(struct unwind_mapping, COUNT);
    struct unwind_mapping_list list;
    struct err err;
    for (uint32_t i = 0; i < COUNT; i++) {
        starts[i] = 0x10000 + i * 0x2000ULL;
        mappings[i] = (struct unwind_mapping){.end = starts[i] + 0x1000, .bias = i};
    }
    assert_int_equal(
        unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings, COUNT, &list, &err),
        ERR_NONE);
    unwind_begin(&unwinder->state, &list, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(unwind_find_mapping(&unwinder->source, &unwinder->state, starts[i] + 0xfff));
        assert_int_equal(unwinder->state.mapping.bias, i);
        assert_false(unwind_find_mapping(&unwinder->source, &unwinder->state, starts[i] + 0x1000));
    }
    assert_false(unwind_find_mapping(&unwinder->source, &unwinder->state, 0xffff));
    mem_free(starts);
    mem_free(mappings);
    destroy_unwinder(unwinder);
}

static void the_unwinder_finds_the_rules_of_the_table(void **state)
{
    (void)state;
    struct unwind_table *table;
    struct unwind_table_ref ref;
    struct err err;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(unwind_table_build(fd, "test", NULL, &table, &err), ERR_NONE);
    close(fd);
    struct test_unwinder *unwinder = create_unwinder(4);
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_NONE);
    unwinder->state.mapping =
        (struct unwind_mapping){.first_chunk = ref.first_chunk, .chunk_count = ref.chunk_count};
    const struct unwind_table_chunk *last = &table->chunks[ref.chunk_count - 1];
    uint64_t bytes = ((uint64_t)(ref.chunk_count - 1) << UNWIND_CHUNK_SHIFT) +
                     (last->first_block + last->block_count + 2) * 256ULL;
    for (uint64_t offset = 0; offset < bytes; offset++) {
        const struct cfi_rule *rule = unwind_table_find(table, table->start + offset);
        uint32_t number;
        assert_true(unwind_find_rule(&unwinder->source, &unwinder->state, offset, &number));
        if (memcmp(&unwinder->source.rules[number], &rule->rule, sizeof rule->rule) != 0 ||
            (cfi_rule_has_extra(&rule->rule) &&
             memcmp(&unwinder->source.rules[number + 1], &rule->extra, sizeof rule->extra) != 0))
            fail_msg("another rule at offset %#lx", (unsigned long)offset);
    }
    unwind_table_destroy(table);
    destroy_unwinder(unwinder);
}

static bool end_at_once(void *context)
{
    (*(uint32_t *)context)++;
    return true;
}

static void tables_beyond_the_budget_are_omitted(void **state)
{
    (void)state;
    struct unwind_table *whole, *part;
    struct err err;
    Dl_info library;
    uint32_t call_count = 0;
    struct read_budget budget = {.end_cpu_ns = INT64_MAX,
                                 .end_wall_ns = INT64_MAX,
                                 .is_over = end_at_once,
                                 .context = &call_count};
    /* A function of libc itself, since the sanitizers intercept the usual ones. */
    assert_true(dladdr(__extension__(void *) gnu_get_libc_version, &library));
    const int fd = open(library.dli_fname, O_RDONLY | O_CLOEXEC);
    assert_int_equal(unwind_table_build(fd, "test", NULL, &whole, &err), ERR_NONE);
    assert_int_equal(unwind_table_build(fd, "test", &budget, &part, &err), ERR_NONE);
    assert_true(budget.is_spent);
    assert_int_equal(call_count, 1);
    assert_int_equal(part->facts.frames.problems[EH_FRAME_TOO_MUCH], 1);
    assert_in_range(part->facts.frames.function_count, 1, whole->facts.frames.function_count - 1);
    unwind_table_destroy(part);
    const int64_t cpu_ns = clock_thread_cpu_ns(), wall_ns = clock_monotonic_ns();
    for (int i = 0; i < 2; i++) {
        budget = (struct read_budget){.end_cpu_ns = i ? INT64_MAX : cpu_ns,
                                      .end_wall_ns = i ? wall_ns : INT64_MAX};
        assert_int_equal(unwind_table_build(fd, "test", &budget, &part, &err), ERR_NONE);
        assert_in_range(part->facts.frames.function_count, 1,
                        whole->facts.frames.function_count - 1);
        unwind_table_destroy(part);
    }
    unwind_table_destroy(whole);
    close(fd);
}

/* Rules that a hash without a random seed would put into 8 of 131,072 slots. */
static void rules_that_were_chosen_to_collide_do_not_collide(void **state)
{
    (void)state;
    enum { SLOTS = 131072, RULES = 2048 };
    struct cfi_rule_key key, other;
    uint8_t *taken = mem_new(uint8_t, SLOTS);
    uint32_t count = 0, used = 0, equal = 0;
    cfi_rule_key_draw(&key);
    cfi_rule_key_draw(&other);
    for (int32_t offset = 16; count < RULES; offset++) {
        const struct cfi_rule rule = {.rule = {.cfa = UNWIND_CFA_SP, .cfa_offset = offset}};
        const uint64_t fixed = rule.words[0] * UINT64_C(0x9e3779b97f4a7c15);
        if ((fixed >> 32) % SLOTS >= 8)
            continue;
        uint8_t *slot = &taken[cfi_rule_hash(&key, &rule) % SLOTS];
        used += !*slot;
        *slot = 1;
        equal += cfi_rule_hash(&key, &rule) == cfi_rule_hash(&other, &rule);
        count++;
    }
    assert_true(used > RULES * 9 / 10);
    assert_int_equal(equal, 0);
    mem_free(taken);
}

static void a_mapping_uses_its_table_once_it_is_loaded(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    struct cfi_rule rules[] = {by_sp_16, cfi_rule_stop(UNWIND_STOP_ROOT)};
    struct unwind_table *table = make_table(rules, 2);
    struct unwind_table_ref ref;
    struct unwind_mapping_list list;
    struct err err;
    assert_int_equal(unwind_maps_reserve(unwinder->maps, 0, table->start, 1, &ref, &err), ERR_NONE);
    const uint64_t starts[] = {LOAD_BIAS};
    const struct unwind_mapping mappings[] = {
        {LOAD_BIAS + 0x100000, LOAD_BIAS + ref.start, ref.first_chunk, ref.chunk_count, 0}};
    assert_int_equal(
        unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings, 1, &list, &err), ERR_NONE);
    const uint64_t stack[] = {0, code(1), 0, 0};
    unwinder->source.stack_start = unwinder->state.sp = STACK;
    set_stack(unwinder, stack, 4);
    unwinder->state.pc = code(0);
    unwinder->state.fp = 1; /* invalid */
    unwind_begin(&unwinder->state, &list, 0);
    unwinder->state.is_exact = 0; /* a caller, whose rule would be cached */
    assert_int_equal(step(unwinder), UNWIND_STOP_FRAME_POINTER);
    for (uint32_t i = 0; i < UNWIND_MEMO_COUNT; i++)
        assert_int_equal(unwinder->source.memos[i].check, 0);
    assert_int_equal(unwind_maps_fill(unwinder->maps, &ref, table, 0, &err), ERR_NONE);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(step(unwinder), UNWIND_STOP_ROOT);
    unwind_table_destroy(table);
    destroy_unwinder(unwinder);
}

static void a_table_of_a_file_that_has_changed_is_refused(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    struct unwind_table *table = make_table(&by_fp, 1);
    struct unwind_table_ref ref;
    struct err err;
    assert_int_equal(unwind_maps_reserve(unwinder->maps, 0, table->start + 256, 1, &ref, &err),
                     ERR_NONE);
    assert_int_equal(unwind_maps_fill(unwinder->maps, &ref, table, 0, &err), ERR_INVALID);
    assert_int_equal(unwinder->source.chunks[ref.first_chunk].group_count, 0);
    unwind_table_destroy(table);
    destroy_unwinder(unwinder);
}

/* A removal frees memory, and a table that did not fit can be loaded then. */
static void a_table_that_did_not_fit_is_loaded_when_there_is_space(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(0);
    struct unwind_table *table = make_table(&by_fp, 1);
    struct unwind_table_ref ref;
    struct unwind_maps_stats stats;
    struct err err;
    assert_int_equal(unwind_maps_reserve(unwinder->maps, 0, table->start, 1, &ref, &err), ERR_NONE);
    assert_int_equal(unwind_maps_fill(unwinder->maps, &ref, table, 0, &err), ERR_LIMIT);
    unwind_maps_stats_get(unwinder->maps, &stats);
    assert_int_equal(stats.refused_count, 1);
    assert_int_equal(stats.used_bytes, 0);
    destroy_unwinder(unwinder);

    unwinder = create_unwinder(1);
    struct unwind_mapping *mappings = mem_new(struct unwind_mapping, UNWIND_MAPPINGS_MAX);
    uint64_t *starts = mem_new(uint64_t, UNWIND_MAPPINGS_MAX);
    struct unwind_mapping_list list;
    assert_int_equal(unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings,
                                              UNWIND_MAPPINGS_MAX, &list, &err),
                     ERR_NONE);
    assert_int_equal(unwind_maps_reserve(unwinder->maps, 0, table->start, 1, &ref, &err), ERR_NONE);
    assert_int_equal(unwind_maps_fill(unwinder->maps, &ref, table, 0, &err), ERR_LIMIT);
    unwind_maps_drop_mappings(unwinder->maps, 0, &list, 0);
    unwind_maps_reclaim(unwinder->maps, 2 * (int64_t)UNWIND_GRACE_NS);
    assert_int_equal(unwind_maps_fill(unwinder->maps, &ref, table, 0, &err), ERR_NONE);
    mem_free(mappings);
    mem_free(starts);
    unwind_table_destroy(table);
    destroy_unwinder(unwinder);
}

static void memory_is_reused_after_the_grace_period_only(void **state)
{
    (void)state;
    struct cfi_rule rules[] = {by_sp_16};
    struct test_unwinder *unwinder = create_unwinder(1);
    struct unwind_table *table = make_table(rules, 1);
    struct unwind_table_ref refs[UNWIND_CHUNK_COUNT], ref;
    struct unwind_maps_stats stats;
    struct err err;
    for (size_t i = 0; i < UNWIND_CHUNK_COUNT; i++)
        assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &refs[i], &err), ERR_NONE);
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_LIMIT);
    for (size_t i = 0; i < UNWIND_CHUNK_COUNT; i++)
        unwind_maps_remove_table(unwinder->maps, &refs[i], 1000);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS);
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_LIMIT);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS + 1001);
    unwind_maps_stats_get(unwinder->maps, &stats);
    assert_int_equal(stats.used_bytes, 0);
    assert_int_equal(stats.waiting_bytes, 0);
    assert_int_equal(stats.refused_count, 2);
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_NONE);
    unwind_table_destroy(table);
    destroy_unwinder(unwinder);
}

/* A table with count rules that no table with another number has. */
static struct unwind_table *make_unique_table(uint32_t number, uint32_t count)
{
    struct cfi_rule *rules = mem_new(struct cfi_rule, count);
    for (uint32_t i = 0; i < count; i++)
        rules[i] = (struct cfi_rule){
            .rule = {.cfa = UNWIND_CFA_SP, .cfa_offset = (int32_t)(1000000 * number + 8 * i)}};
    struct unwind_table *table = make_table(rules, count);
    mem_free(rules);
    return table;
}

/* Adds make_unique_table(number, count) without an owner. A table may add rules for an eighth of
 * the free records: 2,047 at first, so 2,040 rules fit and 16,000 do not. 585 rules fit as long as
 * 4,680 records are free. */
static struct unwind_table_ref add_unique_table(struct test_unwinder *unwinder, uint32_t number,
                                                uint32_t count)
{
    struct unwind_table *table = make_unique_table(number, count);
    struct unwind_table_ref ref;
    struct err err;
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_NONE);
    unwind_table_destroy(table);
    return ref;
}

static void unique_rules_of_one_table_leave_space_for_other_tables(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    for (uint32_t i = 1; i <= 5; i++) {
        const struct unwind_table_ref huge = add_unique_table(unwinder, i, 16000);
        assert_int_equal(unwind_maps_rules_state(unwinder->maps, &huge), UNWIND_RULES_TOO_MANY);
    }
    const struct unwind_table_ref usual = add_unique_table(unwinder, 6, 585);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &usual), UNWIND_RULES_COMPLETE);
    destroy_unwinder(unwinder);
}

static enum err_code add_owned(struct test_unwinder *unwinder, uint64_t owner,
                               const struct unwind_table *table, struct unwind_table_ref *ret_ref)
{
    struct err err;
    assert_int_equal(unwind_maps_reserve(unwinder->maps, owner, table->start, 1, ret_ref, &err),
                     ERR_NONE);
    return unwind_maps_fill(unwinder->maps, ret_ref, table, 0, &err);
}

/* When half of the rules is used, all files of one owner together may have as many as one file. */
static void unique_rules_of_one_user_leave_space_for_other_users(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    struct unwind_maps_stats stats;
    struct unwind_table_ref refs[70], ref;
    for (uint32_t i = 0; i < 70; i++) {
        struct unwind_table *table = make_unique_table(i + 1, 2040);
        assert_int_equal(add_owned(unwinder, 7, table, &refs[i]), ERR_NONE);
        unwind_table_destroy(table);
    }
    unwind_maps_stats_get(unwinder->maps, &stats);
    assert_in_range(UNWIND_RULE_COUNT - stats.rule_count, 5500, 7500);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &refs[69]), UNWIND_RULES_NO_SPACE);
    struct unwind_table *other = make_unique_table(100, 585);
    assert_int_equal(add_owned(unwinder, 8, other, &ref), ERR_NONE);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_COMPLETE);
    unwind_table_destroy(other);
    destroy_unwinder(unwinder);
}

/* Every other record is free, so rules of two records (with cfa_add) do not fit there. Three of the
 * four fit into the last records: fewer than eight, which no table may take because its limit, an
 * eighth of the free ones, is 0. */
static void a_table_that_lacks_adjacent_records_is_not_rebuilt_repeatedly(void **state)
{
    (void)state;
    enum { SINGLE = UNWIND_CHUNK_COUNT - 70, FILLERS = 64, PAIRS = 4 };
    struct cfi_rule pairs[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        pairs[i] = (struct cfi_rule){.rule = {.cfa = UNWIND_CFA_SP_DEREF, .cfa_offset = 16},
                                     .extra = {.cfa_add = 8 * i}};
    struct test_unwinder *unwinder = create_unwinder(4);
    struct unwind_table *table = make_table(pairs, PAIRS);
    struct unwind_maps_stats stats;
    struct unwind_table_ref *refs = mem_new(struct unwind_table_ref, SINGLE), ref;
    struct err err;
    for (uint32_t i = 0; i < SINGLE; i++) {
        const struct cfi_rule rule = {
            .rule = {.cfa = UNWIND_CFA_FP, .cfa_offset = (int32_t)(8 * i)}};
        struct unwind_table *single = make_table(&rule, 1);
        assert_int_equal(unwind_maps_add_table(unwinder->maps, single, &refs[i], &err), ERR_NONE);
        unwind_table_destroy(single);
    }
    for (uint32_t i = 0; i < FILLERS; i++)
        (void)add_unique_table(unwinder, i + 1, 2040);
    unwind_maps_stats_get(unwinder->maps, &stats);
    assert_true(stats.rule_count > UNWIND_RULE_COUNT - 8);
    for (uint32_t i = 0; i < SINGLE; i += 2)
        unwind_maps_remove_table(unwinder->maps, &refs[i], 0);
    unwind_maps_reclaim(unwinder->maps, 2 * (int64_t)UNWIND_GRACE_NS);
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_NONE);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_NO_SPACE);
    for (uint32_t i = 0; i < PAIRS; i++)
        unwind_maps_remove_table(unwinder->maps, &refs[101 + 2 * i], 0);
    unwind_maps_reclaim(unwinder->maps, 2 * (int64_t)UNWIND_GRACE_NS);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_FIT_NOW);
    assert_int_equal(unwind_maps_fill(unwinder->maps, &ref, table, 0, &err), ERR_NONE);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_COMPLETE);
    unwind_table_destroy(table);
    mem_free(refs);
    destroy_unwinder(unwinder);
}

static void unused_rules_are_free_after_the_grace_period(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    struct unwind_table_ref refs[40];
    struct unwind_maps_stats stats;
    struct err err;
    for (uint32_t i = 0; i < 40; i++)
        refs[i] = add_unique_table(unwinder, i + 1, 2000);
    struct unwind_table *table = make_unique_table(100, 585);
    struct unwind_table_ref ref;
    assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_NONE);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_NO_SPACE);
    for (uint32_t i = 0; i < 40; i++)
        unwind_maps_remove_table(unwinder->maps, &refs[i], 1000);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_NO_SPACE);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS + 1001);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_FIT_NOW);
    /* The table is loaded once more; its old memory is free after the grace period. */
    assert_int_equal(unwind_maps_fill(unwinder->maps, &ref, table, 0, &err), ERR_NONE);
    assert_int_equal(unwind_maps_rules_state(unwinder->maps, &ref), UNWIND_RULES_COMPLETE);
    unwind_maps_remove_table(unwinder->maps, &ref, 0);
    unwind_maps_reclaim(unwinder->maps, 2 * (int64_t)UNWIND_GRACE_NS);
    unwind_maps_stats_get(unwinder->maps, &stats);
    assert_int_equal(stats.rule_count, UNWIND_RULE_FIXED_COUNT);
    assert_int_equal(stats.used_bytes, 0);
    assert_int_equal(stats.waiting_bytes, 0);
    unwind_table_destroy(table);
    destroy_unwinder(unwinder);
}

/* Unwinds two frames with the tables of the mapping list; returns by how many bytes sp has grown.
 */
static uint64_t unwind_by(struct test_unwinder *unwinder, const struct unwind_mapping_list *list)
{
    unwinder->state.pc = code(0) + 1;
    unwinder->state.sp = STACK;
    unwind_begin(&unwinder->state, list, 0);
    unwinder->state.is_exact = 0;
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    assert_int_equal(step(unwinder), UNWIND_CONTINUE);
    return unwinder->state.sp - STACK;
}

static struct unwind_mapping_list list_of(struct test_unwinder *unwinder,
                                          const struct unwind_table_ref *ref)
{
    const uint64_t starts[] = {LOAD_BIAS};
    const struct unwind_mapping mappings[] = {
        {LOAD_BIAS + 0x100000, LOAD_BIAS + ref->start, ref->first_chunk, ref->chunk_count, 0}};
    struct unwind_mapping_list list;
    struct err err;
    assert_int_equal(
        unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings, 1, &list, &err), ERR_NONE);
    return list;
}

/* A table is removed, and another one is added at the same addresses. Its rules use the same slots,
 * and unwinding with the first table has filled the memo. */
static void a_rule_that_reuses_a_slot_is_not_confused_with_the_old_one(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    const struct cfi_rule rules[] = {by_sp_16, {.rule = {.cfa = UNWIND_CFA_SP, .cfa_offset = 32}}};
    uint64_t stack[8];
    uint32_t records[2];
    for (uint32_t i = 0; i < 8; i++)
        stack[i] = code(0) + 1;
    unwinder->source.stack_start = STACK;
    set_stack(unwinder, stack, 8);
    for (uint32_t i = 0; i < 2; i++) {
        struct unwind_table *table = make_table(&rules[i], 1);
        struct unwind_table_ref ref;
        struct err err;
        assert_int_equal(unwind_maps_add_table(unwinder->maps, table, &ref, &err), ERR_NONE);
        unwind_table_destroy(table);
        const struct unwind_mapping_list list = list_of(unwinder, &ref);
        for (int again = 0; again < 2; again++)
            assert_int_equal(unwind_by(unwinder, &list), 2 * rules[i].rule.cfa_offset);
        assert_true(unwinder->state.is_recalled);
        assert_true(unwind_find_rule(&unwinder->source, &unwinder->state, 0, &records[i]));
        unwind_maps_drop_mappings(unwinder->maps, 0, &list, 0);
        unwind_maps_remove_table(unwinder->maps, &ref, 0);
        unwind_maps_reclaim(unwinder->maps, 2 * (int64_t)UNWIND_GRACE_NS);
    }
    assert_int_equal(records[0], records[1]);
    destroy_unwinder(unwinder);
}

static void refuses_a_mapping_list_that_does_not_fit(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(1);
    uint64_t *starts = mem_new(uint64_t, UNWIND_MAPPINGS_MAX);
    struct unwind_mapping *mappings = mem_new(struct unwind_mapping, UNWIND_MAPPINGS_MAX);
    struct unwind_mapping_list list;
    struct err err;
    assert_int_equal(unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings,
                                              UNWIND_MAPPINGS_MAX, &list, &err),
                     ERR_NONE);
    assert_int_equal(
        unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings, 1, &list, &err),
        ERR_LIMIT);
    assert_int_equal(unwind_maps_put_mappings(unwinder->maps, 0, 0, starts, mappings,
                                              UNWIND_MAPPINGS_MAX + 1, &list, &err),
                     ERR_TOO_LARGE);
    mem_free(starts);
    mem_free(mappings);
    destroy_unwinder(unwinder);
}

struct lists {
    uint64_t *starts;
    struct unwind_mapping *mappings;
};

static struct lists make_lists(void)
{
    struct lists lists = {.starts = mem_new(uint64_t, UNWIND_MAPPINGS_MAX),
                          .mappings = mem_new(struct unwind_mapping, UNWIND_MAPPINGS_MAX)};
    return lists;
}

static void free_lists(struct lists *lists)
{
    mem_free(lists->starts);
    mem_free(lists->mappings);
}

static enum err_code put(struct test_unwinder *unwinder, const struct lists *lists, uint64_t owner,
                         uint32_t count, struct unwind_mapping_list *ret_list)
{
    struct err err;
    return unwind_maps_put_mappings(unwinder->maps, owner, 0, lists->starts, lists->mappings, count,
                                    ret_list, &err);
}

static uint32_t count_shards(const struct test_unwinder *unwinder)
{
    struct unwind_maps_stats stats;
    unwind_maps_stats_get(unwinder->maps, &stats);
    assert_int_equal(stats.shard_bytes, (uint64_t)stats.shard_count * UNWIND_SHARD_BYTES);
    return stats.shard_count;
}

static void empty_shards_are_freed_and_the_limit_prevents_new_ones(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    struct lists lists = make_lists();
    struct unwind_mapping_list list[3], ignored;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(put(unwinder, &lists, 0, UNWIND_MAPPINGS_MAX, &list[i]), ERR_NONE);
    assert_int_equal(count_shards(unwinder), 3);
    unwind_maps_limit_shards(unwinder->maps, 2);
    assert_int_equal(put(unwinder, &lists, 0, 1, &ignored), ERR_LIMIT);
    unwind_maps_drop_mappings(unwinder->maps, 0, &list[1], 0);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS);
    assert_int_equal(count_shards(unwinder), 3);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS + 1);
    assert_int_equal(count_shards(unwinder), 2);
    assert_null(unwinder->source.shards[1]);
    assert_int_equal(put(unwinder, &lists, 0, 1, &ignored), ERR_LIMIT);
    unwind_maps_limit_shards(unwinder->maps, 3);
    assert_int_equal(put(unwinder, &lists, 0, 1, &ignored), ERR_NONE);
    assert_int_equal(ignored.shard, 1);
    unwind_maps_limit_shards(unwinder->maps, 1);
    for (size_t i = 0; i < 3; i += 2)
        unwind_maps_drop_mappings(unwinder->maps, 0, &list[i], 0);
    unwind_maps_drop_mappings(unwinder->maps, 0, &ignored, 0);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS + 1);
    /* The first shard stays. */
    assert_int_equal(count_shards(unwinder), 1);
    assert_int_equal(put(unwinder, &lists, 0, UNWIND_MAPPINGS_MAX, &ignored), ERR_NONE);
    free_lists(&lists);
    destroy_unwinder(unwinder);
}

/* Adds mapping lists of 64 KiB (2,048 mappings) until the owner's quota is used up; returns how
 * many. */
static uint32_t put_all(struct test_unwinder *unwinder, const struct lists *lists, uint64_t owner,
                        struct unwind_mapping_list *ret_list)
{
    uint32_t count = 0;
    while (!put(unwinder, lists, unwind_maps_is_counted(unwinder->maps) ? owner : 0, 2048,
                &ret_list[count]))
        count++;
    return count;
}

static void large_owners_leave_memory_for_others(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    struct lists lists = make_lists();
    struct unwind_mapping_list *put_lists = mem_new(struct unwind_mapping_list, 256), ignored;
    struct unwind_table *table = make_unique_table(1, 16000); /* 120 KB of rows */
    struct unwind_table_ref refs[16], other;
    uint32_t tables = 0;
    /* While less than half of the memory is used, nothing is counted. */
    for (; tables < 16; tables++)
        assert_int_equal(add_owned(unwinder, 9, table, &refs[tables]), ERR_NONE);
    for (; tables; tables--)
        unwind_maps_remove_table(unwinder->maps, &refs[tables - 1], 0);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS + 1);
    const uint32_t count = put_all(unwinder, &lists, 7, put_lists);
    /* 128 of the 256 pieces of 64 KiB are not counted; then held <= (128 - held) / 8, so 14. */
    assert_int_equal(count, 128 + 14);
    assert_int_equal(put(unwinder, &lists, 8, 2048, &ignored), ERR_NONE);
    while (tables < 16 && !add_owned(unwinder, 9, table, &refs[tables]))
        tables++;
    assert_in_range(tables, 3, 8);
    assert_int_equal(add_owned(unwinder, 10, table, &other), ERR_NONE);
    /* Memory that an owner frees is available to it again. */
    for (size_t i = 0; i < 2; i++)
        unwind_maps_remove_table(unwinder->maps, &refs[i], 0);
    unwind_maps_drop_mappings(unwinder->maps, 7, &put_lists[count - 1], 0);
    unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS + 1);
    assert_int_equal(add_owned(unwinder, 9, table, &refs[0]), ERR_NONE);
    unwind_table_destroy(table);
    mem_free(put_lists);
    free_lists(&lists);
    destroy_unwinder(unwinder);
}

/* The mappings of the process change a little, again and again. */
static void an_owner_at_its_quota_may_replace_mappings(void **state)
{
    (void)state;
    struct test_unwinder *unwinder = create_unwinder(4);
    struct lists lists = make_lists();
    struct unwind_mapping_list *put_lists = mem_new(struct unwind_mapping_list, 256), list;
    struct err err;
    const uint32_t count = put_all(unwinder, &lists, 7, put_lists);
    for (uint32_t i = 0; i < 8; i++) {
        const struct unwind_mapping_list *old = &put_lists[count - 1 - i];
        assert_int_equal(put(unwinder, &lists, 7, 2048, &list), ERR_LIMIT);
        assert_int_equal(unwind_maps_put_mappings(unwinder->maps, 7, old->count, lists.starts,
                                                  lists.mappings, 2048, &list, &err),
                         ERR_NONE);
        unwind_maps_drop_mappings(unwinder->maps, 7, old, 0);
        unwind_maps_reclaim(unwinder->maps, UNWIND_GRACE_NS + 1);
    }
    mem_free(put_lists);
    free_lists(&lists);
    destroy_unwinder(unwinder);
}

static void joins_freed_ranges(void **state)
{
    (void)state;
    struct free_ranges ranges;
    free_ranges_init(&ranges, 100);
    assert_int_equal(free_ranges_take(&ranges, 40), 0);
    assert_int_equal(free_ranges_take(&ranges, 40), 40);
    assert_int_equal(free_ranges_take(&ranges, 40), FREE_RANGES_NONE);
    free_ranges_give(&ranges, 0, 40);
    free_ranges_give(&ranges, 40, 40);
    assert_int_equal(ranges.count, 1);
    assert_int_equal(free_ranges_take(&ranges, 100), 0);
    free_ranges_fini(&ranges);
}

/* The rows of a CFI program as text. */
struct rows {
    char text[1024];
    size_t used;
};

static void add_text(void *context, uint64_t address, const struct cfi_rule *rule)
{
    struct rows *rows = context;
    char text[UNWIND_RULE_TEXT_BYTES];
    unwind_rule_text(rule, false, text);
    rows->used += (size_t)snprintf(rows->text + rows->used, sizeof rows->text - rows->used,
                                   "%lx %s\n", (unsigned long)address, text);
}

static void run_program(const uint8_t *bytes, size_t size, bool is_sound, const char *expected)
{
    struct cfi_common common;
    struct rows rows = {.used = 0};
    static const uint8_t initial[] = {0x0c, 7, 8, 0x90, 1};
    cfi_common_init(&common, false);
    common.code_alignment = 1;
    common.data_alignment = -8;
    assert_true(cfi_program_prepare(
        &common, (struct cfi_cursor){.at = initial, .end = initial + sizeof initial}));
    assert_int_equal(cfi_program_run(&common, (struct cfi_cursor){.at = bytes, .end = bytes + size},
                                     0, 0x100, 0x200, add_text, &rows),
                     is_sound);
    assert_string_equal(rows.text, expected);
}

static void makes_rows_of_a_usual_function(void **state)
{
    (void)state;
    static const uint8_t usual[] = {0x41, 0x0e, 16,   0x86, 2, 0x43, 0x0d, 6,    0x83,
                                    3,    0x60, 0x0a, 0x0c, 7, 8,    0xc6, 0x41, 0x0b};
    run_program(usual, sizeof usual, true,
                "100 cfa=rsp+8 ra=[cfa-8]\n"
                "101 cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n"
                "104 cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n"
                "124 cfa=rsp+8 ra=[cfa-8]\n"
                "125 cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n");
}

static void keeps_the_rows_before_malformed_data(void **state)
{
    (void)state;
    static const uint8_t unknown[] = {0x41, 0x0e, 16, 0x41, 0x3f};
    static const uint8_t cut[] = {0x41, 0x0e};
    static const uint8_t forgotten[] = {0x0b};
    run_program(unknown, sizeof unknown, false,
                "100 cfa=rsp+8 ra=[cfa-8]\n101 cfa=rsp+16 ra=[cfa-8]\n102 stop=corrupt\n");
    run_program(cut, sizeof cut, false, "100 cfa=rsp+8 ra=[cfa-8]\n101 stop=corrupt\n");
    run_program(forgotten, sizeof forgotten, false, "100 stop=corrupt\n");
}

/* Like the end of _Unwind_RaiseException of GCC. Code that realigns the stack by r10 does not
 * enter a handler. */
static void code_that_enters_a_handler_is_marked(void **state)
{
    (void)state;
    static const uint8_t leaving[] = {0x0c, 6, 16,   0x41, 0x0c, 2,    8,  0x41,
                                      0x0d, 7, 0x41, 0x0e, 0,    0x09, 16, 2};
    static const uint8_t going_on[] = {0x0c, 2, 8, 0x41, 0x0c, 6, 16, 0x41, 0x0c, 7, 8};
    static const uint8_t realigned[] = {0x0c, 10, 0, 0x41, 0x0c, 7, 8};
    run_program(leaving, sizeof leaving, true,
                "100 cfa=rbp+16 ra=[cfa-8]\n101 cfa=rcx+8 ra=[cfa-8] to a handler\n"
                "102 cfa=rsp+8 ra=[cfa-8] to a handler\n103 cfa=rsp+0 ra=rcx to a handler\n");
    run_program(going_on, sizeof going_on, true,
                "100 cfa=rcx+8 ra=[cfa-8] to a handler\n101 cfa=rbp+16 ra=[cfa-8]\n"
                "102 cfa=rsp+8 ra=[cfa-8]\n");
    run_program(realigned, sizeof realigned, true,
                "100 cfa=r10+0 ra=[cfa-8]\n101 cfa=rsp+8 ra=[cfa-8]\n");
}

static void knows_the_forms_of_expressions(void **state)
{
    (void)state;
    static const uint8_t plt[] = {0x0f, 11,   0x77, 0x08, 0x80, 0x00, 0x3f,
                                  0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22};
    static const uint8_t realigned[] = {0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0};
    static const uint8_t openssl[] = {0x0f, 6, 0x77, 0x80, 2, 0x06, 0x23, 8};
    static const uint8_t other[] = {0x0f, 2, 0x31, 0x06};
    static const uint8_t large[] = {0x0c, 7, 0x80, 0x80, 0x80, 0x80, 0x40};
    run_program(plt, sizeof plt, true, "100 cfa=rsp+8(+8 from byte 10) ra=[cfa-8]\n");
    run_program(realigned, sizeof realigned, true, "100 cfa=[rbp-8]+0 rbp=[rbp+0] ra=[cfa-8]\n");
    run_program(openssl, sizeof openssl, true, "100 cfa=[rsp+256]+8 ra=[cfa-8]\n");
    run_program(other, sizeof other, true, "100 stop=expression\n");
    run_program(large, sizeof large, true, "100 stop=unsupported\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unwinds_by_stack_and_frame_pointer_to_the_root),
        cmocka_unit_test(looks_up_a_caller_at_its_call_instruction),
        cmocka_unit_test(the_rule_of_an_exception_handler_is_that_of_its_first_byte),
        cmocka_unit_test(continues_from_a_signal_frame_with_all_registers),
        cmocka_unit_test(unwinds_saved_stack_pointers_plt_entries_and_registers),
        cmocka_unit_test(cached_callers_are_used_for_the_same_mappings_only),
        cmocka_unit_test(leaf_functions_of_go_hide_no_caller),
        cmocka_unit_test(follows_frame_pointers_without_a_table),
        cmocka_unit_test(stops_with_the_reason),
        cmocka_unit_test(unmapped_code_counts_if_unwinding_returns_to_a_mapping),
        cmocka_unit_test(finds_each_of_many_mappings),
        cmocka_unit_test(the_unwinder_finds_the_rules_of_the_table),
        cmocka_unit_test(tables_beyond_the_budget_are_omitted),
        cmocka_unit_test(rules_that_were_chosen_to_collide_do_not_collide),
        cmocka_unit_test(a_mapping_uses_its_table_once_it_is_loaded),
        cmocka_unit_test(a_table_of_a_file_that_has_changed_is_refused),
        cmocka_unit_test(a_table_that_did_not_fit_is_loaded_when_there_is_space),
        cmocka_unit_test(memory_is_reused_after_the_grace_period_only),
        cmocka_unit_test(unique_rules_of_one_table_leave_space_for_other_tables),
        cmocka_unit_test(unique_rules_of_one_user_leave_space_for_other_users),
        cmocka_unit_test(a_table_that_lacks_adjacent_records_is_not_rebuilt_repeatedly),
        cmocka_unit_test(unused_rules_are_free_after_the_grace_period),
        cmocka_unit_test(a_rule_that_reuses_a_slot_is_not_confused_with_the_old_one),
        cmocka_unit_test(refuses_a_mapping_list_that_does_not_fit),
        cmocka_unit_test(empty_shards_are_freed_and_the_limit_prevents_new_ones),
        cmocka_unit_test(large_owners_leave_memory_for_others),
        cmocka_unit_test(an_owner_at_its_quota_may_replace_mappings),
        cmocka_unit_test(joins_freed_ranges),
        cmocka_unit_test(makes_rows_of_a_usual_function),
        cmocka_unit_test(keeps_the_rows_before_malformed_data),
        cmocka_unit_test(code_that_enters_a_handler_is_marked),
        cmocka_unit_test(knows_the_forms_of_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
