#include "tests/unit/test.h"

#include "agent/kernel/cpu_list.h"
#include "agent/process/elf_file.h"
#include "agent/process/proc_text.h"
#include "agent/symbols/kernel_symbols.h"
#include "agent/symbols/perf_map.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void a_mapping_has_its_path_with_blanks_and_without_deleted(void **state)
{
    (void)state;
    struct proc_mapping mapping;
    assert_true(proc_text_mapping(
        SPAN_LITERAL("7f00-8f00 r-xp 00001000 fe:1f 77    /opt/a b (deleted)"), &mapping));
    assert_int_equal(mapping.start, 0x7f00);
    assert_int_equal(mapping.limit, 0x8f00);
    assert_int_equal(mapping.file_offset, 0x1000);
    assert_int_equal(mapping.device_major, 0xfe);
    assert_int_equal(mapping.device_minor, 0x1f);
    assert_int_equal(mapping.inode, 77);
    assert_true(mapping.is_executable && mapping.is_deleted);
    assert_true(span_equal_text(mapping.path, "/opt/a b"));
    assert_true(proc_text_mapping(SPAN_LITERAL("7f00-8f00 rw-p 0 0:0 0"), &mapping));
    assert_true(!mapping.is_executable && !mapping.is_deleted && mapping.path.size == 0);
    assert_false(proc_text_mapping(SPAN_LITERAL("8f00-7f00 r-xp 0 0:0 0"), &mapping));
    assert_false(proc_text_mapping(SPAN_LITERAL("nonsense"), &mapping));
}

static void a_name_with_parentheses_does_not_shift_the_fields_of_stat(void **state)
{
    (void)state;
    struct proc_status status;
    assert_true(proc_text_stat(
        SPAN_LITERAL("12 (a) R 9 (b) S 34 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 4711 1 2"),
        &status));
    assert_int_equal(status.parent_id, 34);
    assert_int_equal(status.start_ticks, 4711);
    assert_int_equal(status.thread_count, 3);
    assert_false(status.is_kernel_thread);
    assert_false(proc_text_stat(SPAN_LITERAL("12 (a) S 34"), &status));
}

static void containers_and_units_are_found_in_cgroups(void **state)
{
    (void)state;
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const char *const containers[] = {
        "0::/system.slice/docker-" ID ".scope\n", "0::/docker/" ID "\n",
        "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope\n",
        "4:cpu:/x\n1:name=systemd:/machine.slice/libpod-" ID ".scope/container\n"};
    for (size_t i = 0; i < sizeof(containers) / sizeof(*containers); i++) {
        const struct span cgroup = proc_text_cgroup(span_text(containers[i]));
        assert_true(span_equal_text(proc_text_container(cgroup), ID));
    }
    const struct span hybrid =
        proc_text_cgroup(SPAN_LITERAL("1:name=systemd:/system.slice/x.service\n0::/\n"));
    assert_true(span_equal_text(hybrid, "/system.slice/x.service"));
    assert_true(span_equal_text(proc_text_slice(hybrid), "system.slice"));
    const struct span unit = proc_text_cgroup(SPAN_LITERAL("0::/system.slice/nginx.service\n"));
    assert_true(span_equal_text(proc_text_unit(unit), "nginx.service"));
    assert_int_equal(proc_text_container(unit).size, 0);
    assert_int_equal(proc_text_cgroup(SPAN_LITERAL("rubbish")).size, 0);
}

static void lists_of_cpus_have_ranges(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    uint32_t *cpus, count;
    struct err err;
    assert_int_equal(cpu_list_parse(SPAN_LITERAL("0-2,7\n"), arena, &cpus, &count, &err), 0);
    assert_int_equal(count, 4);
    assert_int_equal(cpus[3], 7);
    assert_int_equal(cpu_list_parse(SPAN_LITERAL("3-1"), arena, &cpus, &count, &err), ERR_INVALID);
    assert_int_equal(cpu_list_parse(SPAN_LITERAL("2,1"), arena, &cpus, &count, &err), ERR_INVALID);
    assert_int_equal(cpu_list_parse(SPAN_LITERAL(""), arena, &cpus, &count, &err), ERR_INVALID);
}

static void the_later_of_two_entries_of_a_perf_map_is_valid(void **state)
{
    (void)state;
    struct perf_map *map = perf_map_create();
    perf_map_take(map, SPAN_LITERAL("1000 100 old\n2000 10 other one\n1040 20 new\nbroken\n"));
    assert_true(span_equal_text(perf_map_find(map, 0x1000), "old"));
    assert_true(span_equal_text(perf_map_find(map, 0x1050), "new"));
    assert_true(span_equal_text(perf_map_find(map, 0x1060), "old"));
    assert_true(span_equal_text(perf_map_find(map, 0x200f), "other one"));
    assert_int_equal(perf_map_find(map, 0x2010).size, 0);
    perf_map_destroy(map);
}

static void the_kernels_functions_are_found_with_their_modules(void **state)
{
    (void)state;
    struct kernel_symbols *symbols = kernel_symbols_create();
    struct kernel_symbol symbol;
    kernel_symbols_read(symbols, SPAN_LITERAL("0000000000002000 t inner\t[ext4]\n"
                                              "0000000000001000 T outer\n"
                                              "0000000000001800 D data\n"
                                              "0000000000003000 T last\n"));
    assert_true(kernel_symbols_find(symbols, 0x1900, INT64_MIN / 2, &symbol));
    assert_true(span_equal_text(symbol.name, "outer") && symbol.module.size == 0);
    assert_true(kernel_symbols_find(symbols, 0x2001, INT64_MIN / 2, &symbol));
    assert_true(span_equal_text(symbol.name, "inner") && span_equal_text(symbol.module, "ext4"));
    assert_false(kernel_symbols_find(symbols, 0x0fff, INT64_MIN / 2, &symbol));
    kernel_symbols_destroy(symbols);
}

/* Kernels since 6.2 list the padding before a function, which can execute, under its own name. */
static void a_kernel_functions_padding_is_its_own(void **state)
{
    (void)state;
    struct kernel_symbols *symbols = kernel_symbols_create();
    struct kernel_symbol symbol;
    kernel_symbols_read(symbols, SPAN_LITERAL("1000 t first\n1ff0 T __pfx_second\n2000 T second\n"
                                              "2ff0 t __pfx_second\t[ext4]\n3000 t second\t[ext4]\n"
                                              "4000 t __pfx_\n"));
    assert_int_equal(kernel_symbols_count(symbols), 4);
    assert_true(kernel_symbols_find(symbols, 0x1fef, INT64_MIN / 2, &symbol));
    assert_true(span_equal_text(symbol.name, "first"));
    for (uint64_t address = 0x1ff0; address <= 0x2001; address++) {
        assert_true(kernel_symbols_find(symbols, address, INT64_MIN / 2, &symbol));
        assert_true(span_equal_text(symbol.name, "second") && symbol.module.size == 0);
    }
    assert_true(kernel_symbols_find(symbols, 0x3000, INT64_MIN / 2, &symbol));
    assert_true(span_equal_text(symbol.name, "second") && span_equal_text(symbol.module, "ext4"));
    kernel_symbols_destroy(symbols);
}

/* More symbols than a block contains, unsorted, with several names per address at each block's
 * border. */
static void each_of_many_kernel_functions_is_found_by_its_first_name(void **state)
{
    (void)state;
    enum { COUNT = 1000, STEP = 0x130 };
    struct kernel_symbols *symbols = kernel_symbols_create();
    struct kernel_symbol symbol;
    char wanted[32];
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < COUNT; i++) {
        const unsigned number = i * 7 % COUNT;
        buf_printf(&text, "%x t first_%u\n%x t second_%u\n", STEP * (number + 1), number,
                   STEP * (number + 1), number);
    }
    kernel_symbols_read(symbols, buf_span(&text));
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(wanted, sizeof(wanted), "first_%u", i);
        for (unsigned offset = 0; offset < STEP; offset += STEP - 1) {
            assert_true(
                kernel_symbols_find(symbols, STEP * (i + 1) + offset, INT64_MIN / 2, &symbol));
            assert_true(span_equal_text(symbol.name, wanted));
            assert_int_equal(symbol.start, STEP * (i + 1));
        }
    }
    kernel_symbols_destroy(symbols);
}

static void an_elf_file_has_a_code_segment_and_other_files_are_refused(void **state)
{
    (void)state;
    struct elf_file file;
    struct err err;
    uint64_t address;
    const int fd = open("/proc/self/exe", O_RDONLY);
    assert_int_equal(elf_file_read(fd, "this", &file, &err), 0);
    close(fd);
    size_t code = 0; /* linkers put it in different places */
    while (code < file.segment_count && !file.segments[code].is_code)
        code++;
    assert_true(code < file.segment_count);
    assert_true(elf_file_address(&file, file.segments[code].offset + 5, &address));
    assert_int_equal(address, file.segments[code].address + 5);
    const int other = open("/proc/self/maps", O_RDONLY);
    assert_int_equal(elf_file_read(other, "maps", &file, &err), ERR_INVALID);
    close(other);
}

static void code_that_shares_a_page_of_the_file_has_its_own_addresses(void **state)
{
    (void)state;
    /* The layout of lld: the first page of the code is also mapped from offset 0. */
    const struct elf_file file = {
        .segments = {{.address = 0, .offset = 0, .bytes = 0xd44},
                     {.address = 0x1d50, .offset = 0xd50, .bytes = 0x7a0, .is_code = true},
                     {.address = 0x34f0, .offset = 0x14f0, .bytes = 0x1e8}},
        .segment_count = 3};
    uint64_t address;
    assert_true(elf_file_address(&file, 0, &address));
    assert_int_equal(address, 0x1000);
    assert_true(elf_file_address(&file, 0x1000, &address));
    assert_int_equal(address, 0x2000);
}

static void reads_the_users_of_a_process(void **state)
{
    (void)state;
    uint32_t user, effective;
    assert_true(proc_text_users(
        span_text("Name:\tx\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n"), &user,
        &effective));
    assert_int_equal(user, 1000);
    assert_int_equal(effective, 0);
    assert_false(proc_text_users(span_text("Name:\tx\n"), &user, &effective));
    assert_false(proc_text_users(span_text("Uid:\t5000000000\t0\n"), &user, &effective));
    assert_false(proc_text_users(span_text("Uid:\t1000"), &user, &effective));
    uint64_t number;
    assert_true(proc_text_own_number(span_text("Pid:\t12\nNSpid:\t12\t7\n"), &number));
    assert_int_equal(number, 7);
    assert_true(proc_text_own_number(span_text("NSpid:\t12\n"), &number));
    assert_int_equal(number, 12);
    assert_false(proc_text_own_number(span_text("Pid:\t12\n"), &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_users_of_a_process),
        cmocka_unit_test(a_mapping_has_its_path_with_blanks_and_without_deleted),
        cmocka_unit_test(a_name_with_parentheses_does_not_shift_the_fields_of_stat),
        cmocka_unit_test(containers_and_units_are_found_in_cgroups),
        cmocka_unit_test(lists_of_cpus_have_ranges),
        cmocka_unit_test(the_later_of_two_entries_of_a_perf_map_is_valid),
        cmocka_unit_test(the_kernels_functions_are_found_with_their_modules),
        cmocka_unit_test(a_kernel_functions_padding_is_its_own),
        cmocka_unit_test(each_of_many_kernel_functions_is_found_by_its_first_name),
        cmocka_unit_test(code_that_shares_a_page_of_the_file_has_its_own_addresses),
        cmocka_unit_test(an_elf_file_has_a_code_segment_and_other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
