#include "tests/unit/test.h"

#include "agent/unwind/go_frames.h"
#include "lib/base/buf.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TEXT = 0x401000, CODE_BYTES = 0x1000, FUNCTION_BYTES = 0x100, FUNCTION_COUNT = 3 };

/* The frame size of a function's code, as changes (zigzag, from -1) and distances. */
static const uint8_t no_frame[] = {2, 0x80, 2, 0};                 /* 0 for all 256 bytes */
static const uint8_t with_frame[] = {2, 4, 64, 0xf0, 1, 63, 4, 0}; /* 0, then 32, then 0 again */
static const uint8_t cut_short[] = {2, 16};                        /* 0, then the table ends */

struct maker {
    struct buf bytes;
    bool is_old; /* of Go 1.16 */
};

static void put(struct buf *bytes, uint64_t value, size_t size)
{
    buf_append(bytes, &value, size);
}

/* Function I begins at offset 256 * I of the code. */
static void make_table(struct maker *maker, uint64_t text)
{
    struct buf *bytes = &maker->bytes;
    const uint8_t *const programs[] = {no_frame, with_frame, cut_short};
    const size_t sizes[] = {sizeof no_frame, sizeof with_frame, sizeof cut_short};
    const size_t word = maker->is_old ? 8 : 4;
    const size_t header_bytes = 8 + 8 * (maker->is_old ? 7 : 8);
    const size_t programs_bytes = 1 + sizeof no_frame + sizeof with_frame;
    const size_t list_bytes = FUNCTION_COUNT * 2 * word + word;
    buf_init(bytes, 1 << 16);
    put(bytes, maker->is_old ? 0xfffffffa : 0xfffffff1, 4);
    put(bytes, 0, 2);
    put(bytes, 1, 1); /* quantum of the processor */
    put(bytes, 8, 1); /* size of a word */
    put(bytes, FUNCTION_COUNT, 8);
    put(bytes, 0, 8);
    if (!maker->is_old)
        put(bytes, text, 8);
    for (int i = 0; i < 3; i++)
        put(bytes, 0, 8);
    put(bytes, header_bytes, 8);
    put(bytes, header_bytes + programs_bytes, 8);
    /* The truncated table is the last one of the file, after the functions. */
    uint32_t offsets[FUNCTION_COUNT] = {1, 1 + sizeof no_frame, 0};
    const size_t function_bytes = word + 16;
    offsets[2] = (uint32_t)(programs_bytes + list_bytes + FUNCTION_COUNT * function_bytes);
    put(bytes, 0, 1);
    for (int i = 0; i < 2; i++)
        buf_append(bytes, programs[i], sizes[i]);
    for (uint32_t i = 0; i <= FUNCTION_COUNT; i++) {
        put(bytes, (maker->is_old ? (uint64_t)TEXT : 0) + (uint64_t)i * FUNCTION_BYTES, word);
        if (i < FUNCTION_COUNT)
            put(bytes, list_bytes + i * function_bytes, word);
    }
    for (uint32_t i = 0; i < FUNCTION_COUNT; i++) {
        put(bytes, 0, word);
        put(bytes, 0, 8);
        put(bytes, 0, 4);
        put(bytes, offsets[i], 4);
    }
    buf_append(bytes, programs[2], sizes[2]);
}

static void note_function(void *context, uint64_t start, uint64_t end)
{
    char text[64];
    snprintf(text, sizeof text, "%llx-%llx:", (unsigned long long)start - TEXT,
             (unsigned long long)end - TEXT);
    strcat(context, text);
}

static void note_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    char text[64];
    snprintf(text, sizeof text, " %llx %s", (unsigned long long)address - TEXT,
             rule->rule.cfa == UNWIND_CFA_LEAF ? "leaf" : "none");
    strcat(context, text);
}

static struct elf_frames frames_of(struct span bytes)
{
    const int fd = memfd_create("table", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes.data, bytes.size), bytes.size);
    return (struct elf_frames){.fd = fd,
                               .path = "table",
                               .machine = EM_X86_64,
                               .file_bytes = bytes.size,
                               .go_table = {0, 0, bytes.size},
                               .text_address = TEXT,
                               .code_count = 1,
                               .code = {{TEXT, 0, CODE_BYTES}}};
}

static bool read_functions(const struct elf_frames *frames, uint64_t from, uint64_t limit,
                           char *ret_text)
{
    struct go_frames go;
    const struct eh_frame_sink sink = {note_function, note_row, ret_text, NULL};
    ret_text[0] = '\0';
    const bool is_open = go_frames_open(frames, &go);
    go_frames_until(&go, from, limit, &sink);
    go_frames_close(&go);
    return is_open;
}

#define ALL_ROWS                                                                                   \
    "0-100: 0 leaf100-200: 100 leaf 104 none 1f4 leaf 1f8 none200-300: 200 leaf 210 none"

static void reports_code_without_a_frame(void **state)
{
    (void)state;
    for (int is_old = 0; is_old < 2; is_old++) {
        char text[1024];
        struct maker maker = {.is_old = is_old};
        make_table(&maker, TEXT);
        const struct elf_frames frames = frames_of(buf_span(&maker.bytes));
        assert_true(read_functions(&frames, 0, UINT64_MAX, text));
        assert_string_equal(text, ALL_ROWS);
        close(frames.fd);
        buf_fini(&maker.bytes);
    }
}

static void omits_covered_ranges_and_data(void **state)
{
    (void)state;
    char text[1024];
    struct maker maker = {0};
    make_table(&maker, TEXT);
    struct elf_frames frames = frames_of(buf_span(&maker.bytes));
    assert_true(read_functions(&frames, TEXT + 1, TEXT + 0x200, text));
    assert_string_equal(text, "100-200: 100 leaf 104 none 1f4 leaf 1f8 none");
    assert_true(read_functions(&frames, 0, TEXT + 0x180, text));
    assert_string_equal(text, "0-100: 0 leaf");
    frames.code[0].bytes = 0x1ff;
    assert_true(read_functions(&frames, 0, UINT64_MAX, text));
    assert_string_equal(text, "0-100: 0 leaf");
    close(frames.fd);
    buf_fini(&maker.bytes);
}

static void without_an_address_the_section_is_used_if_all_code_is_go(void **state)
{
    (void)state;
    char text[1024];
    struct maker maker = {0};
    make_table(&maker, 0);
    struct elf_frames frames = frames_of(buf_span(&maker.bytes));
    assert_true(read_functions(&frames, 0, UINT64_MAX, text));
    assert_string_equal(text, ALL_ROWS);
    frames.eh_frame.bytes = 1; /* linked C code may precede Go code in .text */
    assert_false(read_functions(&frames, 0, UINT64_MAX, text));
    assert_string_equal(text, "");
    close(frames.fd);
    buf_fini(&maker.bytes);
}

static void a_truncated_table_returns_no_function_twice(void **state)
{
    (void)state;
    struct maker maker = {0};
    make_table(&maker, TEXT);
    for (size_t size = 0; size < maker.bytes.size; size++) {
        char text[1024];
        const struct elf_frames frames = frames_of(span_of(maker.bytes.data, size));
        (void)read_functions(&frames, 0, UINT64_MAX, text);
        assert_true(strlen(text) <= strlen(ALL_ROWS));
        close(frames.fd);
    }
    buf_fini(&maker.bytes);
}

static void count_function(void *context, uint64_t start, uint64_t end)
{
    (void)start, (void)end;
    (*(uint32_t *)context)++;
}

static void ignore_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    (void)context, (void)address, (void)rule;
}

/* Counts functions of one byte each whose table entries are step * 64 bytes apart. */
static uint32_t count_functions(uint32_t count, uint32_t step)
{
    struct buf bytes;
    const uint32_t list_bytes = (count + 1) * 8;
    buf_init(&bytes, 1 << 20);
    put(&bytes, 0xfffffff1, 4);
    put(&bytes, 0x08010000, 4);
    const uint64_t words[] = {count, 0, TEXT, 0, 0, 0, 72 + list_bytes, 72};
    buf_append(&bytes, words, sizeof words);
    for (uint32_t i = 0; i <= count; i++) {
        put(&bytes, i, 4);
        put(&bytes, i < count ? list_bytes + i * step % count * 64 : 0, 4);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t function[16] = {[4] = i * 64 + 32, [8] = 0x102};
        buf_append(&bytes, function, sizeof function);
    }
    struct elf_frames frames = frames_of(buf_span(&bytes));
    struct go_frames go;
    uint32_t found = 0;
    const struct eh_frame_sink sink = {count_function, ignore_row, &found, NULL};
    assert_true(go_frames_open(&frames, &go));
    go_frames_until(&go, 0, UINT64_MAX, &sink);
    go_frames_close(&go);
    close(frames.fd);
    buf_fini(&bytes);
    return found;
}

static void scattered_functions_are_read_up_to_a_limit(void **state)
{
    (void)state;
    assert_int_equal(count_functions(4096, 1), 4096);
    assert_in_range(count_functions(4096, 1031), 500, 2500);
}

static void refuses_unknown_versions(void **state)
{
    (void)state;
    char text[1024];
    struct maker maker = {0};
    make_table(&maker, TEXT);
    static const struct {
        size_t at;
        uint8_t byte;
    } changes[] = {{0, 0xfb}, {6, 3}, {7, 4}, {15, 0xff}, {63, 0xff}, {71, 0xff}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        uint8_t *byte = maker.bytes.data + changes[i].at;
        const uint8_t before = *byte;
        *byte = changes[i].byte;
        const struct elf_frames frames = frames_of(buf_span(&maker.bytes));
        assert_false(read_functions(&frames, 0, UINT64_MAX, text));
        assert_string_equal(text, "");
        close(frames.fd);
        *byte = before;
    }
    buf_fini(&maker.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_code_without_a_frame),
        cmocka_unit_test(omits_covered_ranges_and_data),
        cmocka_unit_test(without_an_address_the_section_is_used_if_all_code_is_go),
        cmocka_unit_test(a_truncated_table_returns_no_function_twice),
        cmocka_unit_test(scattered_functions_are_read_up_to_a_limit),
        cmocka_unit_test(refuses_unknown_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
