#include "tests/unit/test.h"

#include "agent/symbols/jitdump.h"
#include "lib/base/os.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LOAD, MOVE, DEBUG_LINES, CLOSE, UNWINDING };

/* ---- a writer ---- */

static void begin(struct buf *file)
{
    buf_init(file, 64 << 20);
    buf_append_u32(file, 0x4A695444);
    buf_append_u32(file, 1);
    buf_append_u32(file, 40);
    for (int i = 0; i < 7; i++)
        buf_append_u32(file, 0);
}

static void put_head(struct buf *file, uint32_t id, size_t body_bytes)
{
    buf_append_u32(file, id);
    buf_append_u32(file, (uint32_t)(16 + body_bytes));
    buf_append_u64(file, 7);
}

static void put_load(struct buf *file, const char *name, uint64_t start, uint64_t bytes,
                     uint64_t index)
{
    put_head(file, LOAD, 40 + strlen(name) + 1 + 3);
    buf_append_u64(file, 0);
    buf_append_u64(file, start);
    buf_append_u64(file, start);
    buf_append_u64(file, bytes);
    buf_append_u64(file, index);
    buf_append(file, name, strlen(name) + 1);
    buf_append(file, "\xCC\x00\xCC", 3);
}

static void put_move(struct buf *file, uint64_t from, uint64_t to, uint64_t bytes, uint64_t index)
{
    put_head(file, MOVE, 48);
    const uint64_t words[] = {0, from, from, to, bytes, index};
    for (size_t i = 0; i < 6; i++)
        buf_append_u64(file, words[i]);
}

static void put_lines(struct buf *file, uint64_t start, const char *name)
{
    put_head(file, DEBUG_LINES, 16 + 16 + strlen(name) + 1 + 16 + 2);
    buf_append_u64(file, start);
    buf_append_u64(file, 2);
    buf_append_u64(file, start);
    buf_append_u32(file, 5);
    buf_append_u32(file, 0);
    buf_append(file, name, strlen(name) + 1);
    buf_append_u64(file, start + 8);
    buf_append_u32(file, 6);
    buf_append_u32(file, 0);
    buf_append(file, "\xFF", 2);
}

/* A read ends after some time, at the earliest after one record. */
static bool read_to_end(struct jitdump *dump, int fd, uint64_t file_bytes, uint64_t max_bytes)
{
    bool has_space = jitdump_read(dump, fd, file_bytes, max_bytes);
    while (has_space && jitdump_has_more(dump))
        has_space = jitdump_read(dump, fd, file_bytes, max_bytes);
    return has_space;
}

static bool read_within(struct jitdump *dump, const struct buf *file, uint64_t max_bytes)
{
    fd_auto fd = memfd_create("jitdump", MFD_CLOEXEC);
    assert_int_equal(os_write_all(fd, file->data, file->size), 0);
    return read_to_end(dump, fd, file->size, max_bytes);
}

static void read_all(struct jitdump *dump, const struct buf *file)
{
    assert_true(read_within(dump, file, 64 << 20));
}

static void assert_location(const struct jitdump *dump, uint64_t address, const char *function,
                            const char *file, uint32_t line)
{
    struct jitdump_location location;
    assert_true(jitdump_find(dump, address, &location));
    assert_true(span_equal_text(location.function, function));
    assert_true(span_equal_text(location.file, file));
    assert_int_equal(location.line, line);
}

static void assert_nothing(const struct jitdump *dump, uint64_t address)
{
    struct jitdump_location location;
    assert_false(jitdump_find(dump, address, &location));
}

/* ---- tests ---- */

static void functions_have_names_and_lines(void **state)
{
    (void)state;
    struct jitdump *dump = jitdump_create();
    buf_auto file;
    begin(&file);
    put_lines(&file, 0x1000, "app.jl");
    put_load(&file, "run", 0x1000, 0x20, 1);
    put_load(&file, "plain", 0x2000, 0x10, 2);
    put_head(&file, UNWINDING, 0);
    put_load(&file, "again", 0x2008, 0x4, 3);
    read_all(dump, &file);
    assert_location(dump, 0x1000, "run", "app.jl", 5);
    assert_location(dump, 0x101f, "run", "app.jl", 6);
    assert_location(dump, 0x2000, "plain", "", 0);
    assert_location(dump, 0x2008, "again", "", 0); /* the later record is valid */
    assert_location(dump, 0x200c, "plain", "", 0);
    assert_nothing(dump, 0xfff);
    assert_nothing(dump, 0x1020);
    jitdump_destroy(dump);
    jitdump_destroy(NULL);
}

static void moved_code_keeps_its_name_and_lines(void **state)
{
    (void)state;
    struct jitdump *dump = jitdump_create();
    buf_auto file;
    begin(&file);
    put_lines(&file, 0x1000, "app.jl");
    put_load(&file, "run", 0x1000, 0x20, 9);
    put_move(&file, 0x1000, 0x5000, 0x20, 9);
    put_move(&file, 0x1000, 0x6000, 0x20, 8);
    read_all(dump, &file);
    assert_location(dump, 0x5009, "run", "app.jl", 6);
    assert_nothing(dump, 0x6000);
    jitdump_destroy(dump);
}

static void appended_records_are_read_later(void **state)
{
    (void)state;
    struct jitdump *dump = jitdump_create();
    buf_auto file;
    begin(&file);
    put_load(&file, "first", 0x1000, 0x20, 1);
    const size_t whole = file.size;
    put_load(&file, "second", 0x2000, 0x20, 2);
    const size_t all = file.size;
    for (size_t size = 0; size <= all; size++) {
        file.size = size;
        read_all(dump, &file);
        struct jitdump_location location;
        assert_int_equal(jitdump_find(dump, 0x1000, &location), size >= whole);
        assert_int_equal(jitdump_find(dump, 0x2000, &location), size >= all);
    }
    jitdump_destroy(dump);
}

static void malformed_records_end_the_reading_and_invalid_names_are_omitted(void **state)
{
    (void)state;
    struct jitdump *dump = jitdump_create();
    buf_auto file;
    begin(&file);
    put_load(&file, "fine", 0x1000, 0x20, 1);
    put_load(&file, "bad\x80name", 0x3000, 0x20, 1);
    put_load(&file, "around", UINT64_MAX - 4, 0x20, 1);
    put_lines(&file, 0x4000, "bad\x01file");
    put_load(&file, "lost file", 0x4000, 0x20, 1);
    buf_append_u32(&file, LOAD);
    buf_append_u32(&file, 15);
    buf_append_u64(&file, 0);
    put_load(&file, "never", 0x2000, 0x20, 2);
    read_all(dump, &file);
    assert_location(dump, 0x1000, "fine", "", 0);
    assert_location(dump, 0x4000, "lost file", "", 0);
    assert_nothing(dump, 0x2000);
    assert_nothing(dump, 0x3000);
    assert_nothing(dump, UINT64_MAX - 2);
    jitdump_destroy(dump);
    dump = jitdump_create();
    file.data[0]++;
    read_all(dump, &file);
    assert_nothing(dump, 0x1000);
    file.data[0]--;
    read_all(dump, &file); /* permanently */
    assert_nothing(dump, 0x1000);
    jitdump_destroy(dump);
}

static void reading_ends_at_the_memory_limit(void **state)
{
    (void)state;
    struct jitdump *dump = jitdump_create();
    buf_auto file;
    begin(&file);
    for (uint32_t i = 0; i < 2000; i++)
        put_load(&file, "one of many", 0x1000 + 0x10 * i, 0x10, i);
    assert_false(read_within(dump, &file, 64 << 10));
    assert_location(dump, 0x1000, "one of many", "", 0);
    assert_nothing(dump, 0x1000 + 0x10 * 1999);
    assert_true(jitdump_bytes(dump) <= 64 << 10);
    assert_false(read_within(dump, &file, 64 << 20));
    assert_nothing(dump, 0x1000 + 0x10 * 1999);
    jitdump_destroy(dump);
}

/* 60,000 lines, or as many file names, in one record. */
static void a_record_stays_within_the_memory_limit(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    for (uint64_t max_bytes = 0; max_bytes <= 8 << 20; max_bytes = 4 * max_bytes + 1000) {
        for (int has_names = 0; has_names <= 1; has_names++) {
            struct jitdump *dump = jitdump_create();
            buf_auto file, body;
            begin(&file);
            put_load(&file, "first", 0x1000, 0x20, 1);
            buf_init(&body, BYTES);
            buf_append_u64(&body, 0);
            buf_append_u64(&body, UINT64_MAX);
            for (uint32_t i = 0; body.size + 32 < BYTES; i++) {
                buf_append_u64(&body, 0x2000 + i);
                buf_append_u64(&body, 1);
                if (has_names)
                    buf_printf(&body, "file%u", i);
                buf_append_byte(&body, 0);
            }
            put_head(&file, DEBUG_LINES, body.size);
            buf_append_span(&file, buf_span(&body));
            (void)read_within(dump, &file, max_bytes);
            assert_true(jitdump_bytes(dump) <= max_bytes);
            if (max_bytes >= 64 << 10)
                assert_location(dump, 0x1000, "first", "", 0);
            jitdump_destroy(dump);
        }
    }
}

/* A linear search of all functions for each move would take hours. */
static void moves_are_cheap(void **state)
{
    (void)state;
    enum { LOADS = 150000, MOVES = 150000 };
    struct jitdump *dump = jitdump_create();
    buf_auto file;
    begin(&file);
    for (uint32_t i = 0; i < LOADS; i++)
        put_load(&file, "f", 0x1000 + 0x10 * i, 0x10, i);
    for (uint32_t i = 0; i < MOVES; i++)
        put_move(&file, 7, 0x100000000 + 0x10 * i, 0x10, i);
    put_load(&file, "last", 0x200, 0x20, LOADS);
    do
        read_all(dump, &file);
    while (jitdump_has_more(dump));
    assert_location(dump, 0x1000, "f", "", 0);
    assert_location(dump, 0x200, "last", "", 0);
    jitdump_destroy(dump);
}

enum { HUGE_BYTES = 0x100010 };

/* Writes count records of one kind that are sparse except for body. */
static int open_huge(uint32_t id, uint32_t count, struct span body)
{
    buf_auto file;
    begin(&file);
    const int fd = memfd_create("jitdump", MFD_CLOEXEC);
    assert_int_equal(os_write_all(fd, file.data, file.size), 0);
    buf_clear(&file);
    put_head(&file, id, HUGE_BYTES - 16);
    buf_append_span(&file, body);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pwrite(fd, file.data, file.size, (off_t)(40 + i * (uint64_t)HUGE_BYTES)),
                         file.size);
    return fd;
}

/* The bytes that this process has read so far; proc_pid_io(5). */
static uint64_t bytes_read(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    unsigned long long bytes = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "rchar: %llu", &bytes), 1);
    fclose(file);
    return bytes;
}

static void huge_records_are_read_in_part(void **state)
{
    (void)state;
    enum { COUNT = 40000, MAX_BYTES = 32 << 10 };
    for (uint32_t id = LOAD; id <= UNWINDING; id++) {
        struct jitdump *dump = jitdump_create();
        fd_auto fd = open_huge(id, COUNT, (struct span){0});
        assert_int_equal(ftruncate(fd, 40 + COUNT * (int64_t)HUGE_BYTES), 0);
        const uint64_t before = bytes_read();
        assert_true(read_to_end(dump, fd, 40 + COUNT * (uint64_t)HUGE_BYTES, 64 << 20));
        assert_true(bytes_read() - before < COUNT * (uint64_t)MAX_BYTES);
        jitdump_destroy(dump);
    }
}

/* Lines of a file with a long name: little to store, much to read. */
static void a_long_file_is_read_in_several_calls(void **state)
{
    (void)state;
    enum { COUNT = 150, NAME_BYTES = 4000 };
    struct jitdump *dump = jitdump_create();
    char name[NAME_BYTES] = "";
    memset(name, 'n', NAME_BYTES - 1);
    buf_auto body;
    buf_init(&body, HUGE_BYTES);
    buf_append_u64(&body, 0);
    buf_append_u64(&body, UINT64_MAX);
    while (body.size + 16 + NAME_BYTES <= HUGE_BYTES - 16) {
        buf_append_u64(&body, 0);
        buf_append_u64(&body, 1);
        buf_append(&body, name, NAME_BYTES);
    }
    fd_auto fd = open_huge(DEBUG_LINES, COUNT, buf_span(&body));
    uint32_t readings = 1;
    const uint64_t bytes = 40 + COUNT * (uint64_t)HUGE_BYTES;
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    for (; jitdump_read(dump, fd, bytes, 64 << 20) && jitdump_has_more(dump); readings++)
        assert_true(readings < 10000);
    assert_true(readings >= 3);
    jitdump_destroy(dump);
}

static void files_are_known_by_their_names(void **state)
{
    (void)state;
    assert_true(jitdump_is_path(SPAN_LITERAL("/tmp/x/jit-17.dump")));
    assert_true(jitdump_is_path(SPAN_LITERAL("jit-0.dump")));
    static const char *const others[] = {"",         "jit-.dump",    "/jit-1.dump/x", "xjit-1.dump",
                                         "jit-1.du", "/jit-1x.dump", "jit-dump",      "/"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_false(jitdump_is_path(span_text(others[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_names_and_lines),
        cmocka_unit_test(moved_code_keeps_its_name_and_lines),
        cmocka_unit_test(appended_records_are_read_later),
        cmocka_unit_test(malformed_records_end_the_reading_and_invalid_names_are_omitted),
        cmocka_unit_test(reading_ends_at_the_memory_limit),
        cmocka_unit_test(a_record_stays_within_the_memory_limit),
        cmocka_unit_test(moves_are_cheap),
        cmocka_unit_test(huge_records_are_read_in_part),
        cmocka_unit_test(a_long_file_is_read_in_several_calls),
        cmocka_unit_test(files_are_known_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
