#include "tests/unit/test.h"

#include "agent/interpreter/cpython.h"
#include "agent/interpreter/cpython_code.h"
#include "agent/interpreter/cpython_text.h"

#include <stdio.h>
#include <unistd.h>

/* ---- lines ----
 * tests/integration/agent/test_cpython_lines.py compares whole modules with CPython itself. */

static uint32_t line(enum cpython_line_form form, struct span table, int64_t offset)
{
    return cpython_lines_find(form, table, 10, offset);
}

static void lines_are_found_by_increments(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0, 1, 4, 2, 6, 0xFF};
    const struct span table = span_of(bytes, sizeof(bytes));
    const enum cpython_line_form form = CPYTHON_LINES_INCREMENTS;
    assert_int_equal(line(form, table, -1), 10);
    assert_int_equal(line(form, table, 0), 11);
    assert_int_equal(line(form, table, 3), 11);
    assert_int_equal(line(form, table, 4), 13);
    assert_int_equal(line(form, table, 10), 12);
    assert_int_equal(line(form, span_of(bytes, 1), 10), 10);
}

static void lines_are_found_by_ranges(void **state)
{
    (void)state;
    const uint8_t bytes[] = {4, 1, 2, 0x80, 6, 0xFE};
    const struct span table = span_of(bytes, sizeof(bytes));
    const enum cpython_line_form form = CPYTHON_LINES_RANGES;
    assert_int_equal(line(form, table, 2), 11);
    assert_int_equal(line(form, table, 4), 0);
    assert_int_equal(line(form, table, 6), 9);
    assert_int_equal(line(form, table, 12), 0);
}

static void lines_are_found_by_locations(void **state)
{
    (void)state;
    /* A RESUME without a column; the next line; a long entry with line delta -2; an entry without
     * a line. */
    const uint8_t bytes[] = {
        0x80 | 13 << 3, 0, 0x80 | 11 << 3 | 1, 4, 8, 0x80 | 14 << 3, 5, 0, 1, 1, 0x80 | 15 << 3};
    const struct span table = span_of(bytes, sizeof(bytes));
    const enum cpython_line_form form = CPYTHON_LINES_LOCATIONS;
    assert_int_equal(line(form, table, 0), 10);
    assert_int_equal(line(form, table, 2), 11);
    assert_int_equal(line(form, table, 5), 11);
    assert_int_equal(line(form, table, 6), 9);
    assert_int_equal(line(form, table, 8), 0);
    assert_int_equal(line(form, table, 10), 0);
}

static void lines_below_1_become_1(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0, 0x81, 2, 0x81};
    assert_int_equal(line(CPYTHON_LINES_INCREMENTS, span_of(bytes, sizeof(bytes)), 9), 0);
    assert_int_equal(cpython_lines_find(CPYTHON_LINES_RANGES, span_of(bytes, 0), UINT32_MAX, -2),
                     0);
}

/* ---- texts ---- */

static void assert_text(struct span characters, uint32_t character_bytes, const char *wanted)
{
    buf_auto text;
    buf_init(&text, 64);
    cpython_text_decode(characters, character_bytes, &text);
    buf_append_byte(&text, 0);
    assert_string_equal((const char *)text.data, wanted);
}

static void characters_become_utf8(void **state)
{
    (void)state;
    const uint16_t two[] = {0x65E5, 0x672C, 'x', 0xD800};
    const uint32_t four[] = {0x1F40D, 'y', 0x110000};
    assert_text(SPAN_LITERAL("gr\xF6\xDF"
                             "e"),
                1, "größe");
    assert_text(span_of(two, sizeof(two)), 2, "日本x\xEF\xBF\xBD");
    assert_text(span_of(four, sizeof(four)), 4, "🐍y\xEF\xBF\xBD");
}

static void bits_determine_the_form_of_a_string(void **state)
{
    (void)state;
    struct cpython_text_form form;
    /* Interned, one byte per character, compact, ASCII: the layout until 3.13, and that of 3.14. */
    assert_true(cpython_text_form(1 | 1 << 2 | 1 << 5 | 1 << 6, &form));
    assert_true(form.is_ascii && form.character_bytes == 1);
    assert_true(cpython_text_form(1 | 2 << 16 | 1 << 19, &form));
    assert_true(!form.is_ascii && form.character_bytes == 2);
    assert_false(cpython_text_form(1 | 3 << 2 | 1 << 5, &form));
    assert_false(cpython_text_form(1 << 2, &form));
    assert_false(cpython_text_form(0, &form));
}

/* ---- layouts ---- */

static void layouts_fit_what_the_kernel_reads(void **state)
{
    (void)state;
    for (uint32_t minor = 8; minor <= 12; minor++) {
        const struct cpython_layout *layout = cpython_layout_find(3 << 8 | minor);
        assert_non_null(layout);
        const struct interpreter_layout *frames = &layout->frames;
        assert_true(frames->frame_bytes < INTERPRETER_PIECE_BYTES);
        assert_true(frames->code_bytes < INTERPRETER_PIECE_BYTES);
        for (int i = 0; i < 3; i++)
            assert_true(frames->code_words[i] + 8 <= frames->code_bytes);
        assert_true(frames->frame_position + (frames->is_position_short ? 4 : 8) <=
                    frames->frame_bytes);
        assert_true(frames->groups != INTERPRETER_NONE);
    }
    assert_null(cpython_layout_find(3 << 8 | 7));
    assert_null(cpython_layout_find(3 << 8 | 13));
    assert_null(cpython_layout_find(0));
}

/* The versions of which the process contains the offsets: the word with which each part begins. */
static const struct {
    uint32_t minor;
    uint32_t frame, code, unicode;
} versions[] = {{13, 28, 34, 67}, {14, 31, 39, 77}};
enum { VERSIONS = sizeof(versions) / sizeof(*versions), OFFSET_WORDS = CPYTHON_OFFSETS_BYTES / 8 };

/* Writes the offsets of version i. */
static void put_offsets(uint64_t words[OFFSET_WORDS], uint32_t i)
{
    memset(words, 0, CPYTHON_OFFSETS_BYTES);
    memcpy(words, "xdebugpy", 8);
    words[1] = (3 << 8 | versions[i].minor) << 16 | 0xF0;
    uint64_t *frame = words + versions[i].frame, *code = words + versions[i].code;
    frame[1] = 8;  /* previous frame */
    frame[3] = 56; /* instruction */
    frame[5] = 70; /* owner */
    code[2] = 120; /* name */
    code[4] = 136; /* line table */
    code[5] = 68;  /* first line */
    words[versions[i].unicode + 3] = 40;
}

static void layouts_are_read_from_the_process(void **state)
{
    (void)state;
    uint64_t words[OFFSET_WORDS];
    struct cpython_layout layout;
    for (uint32_t i = 0; i < VERSIONS; i++) {
        put_offsets(words, i);
        assert_int_equal(cpython_layout_read(span_of(words, sizeof(words)), &layout),
                         INTERPRETER_READY);
        assert_int_equal(layout.version, 3 << 8 | versions[i].minor);
        assert_int_equal(layout.frames.group_end, 70);
        assert_int_equal(layout.frames.frame_bytes, 71);
        assert_int_equal(layout.frames.code_bytes, 76);
        assert_int_equal(layout.ascii_bytes, 40);
    }
}

static void a_layout_from_the_process_is_checked(void **state)
{
    (void)state;
    uint64_t words[OFFSET_WORDS] = {0};
    const struct span offsets = span_of(words, sizeof(words));
    struct cpython_layout layout;
    assert_int_equal(cpython_layout_read(offsets, &layout), INTERPRETER_REFUSED_LAYOUT);
    for (uint32_t i = 0; i < VERSIONS; i++) {
        put_offsets(words, i);
        words[2] = 1; /* without the GIL */
        assert_int_equal(cpython_layout_read(offsets, &layout), INTERPRETER_REFUSED_BUILD);
        words[2] = 0;
        words[versions[i].frame + 3] = 4096;
        assert_int_equal(cpython_layout_read(offsets, &layout), INTERPRETER_REFUSED_LAYOUT);
        words[versions[i].frame + 3] = UINT64_MAX;
        assert_int_equal(cpython_layout_read(offsets, &layout), INTERPRETER_REFUSED_LAYOUT);
    }
    put_offsets(words, VERSIONS - 1);
    words[1] += 1 << 16; /* the version after the last one */
    assert_int_equal(cpython_layout_read(offsets, &layout), INTERPRETER_REFUSED_VERSION);
}

/* ---- functions in the memory of a process: this one ---- */

enum { OBJECT_BYTES = 256, TEXT_BYTES = 64, LINES_BYTES = 20000, FUNCTIONS = 40 };

struct functions {
    const struct cpython_layout *layout;
    uint8_t code[FUNCTIONS][OBJECT_BYTES];
    uint8_t names[FUNCTIONS][TEXT_BYTES];
    uint8_t lines[LINES_BYTES + 64];
};

static uint64_t address_of(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

static void put_word(uint8_t *object, size_t offset, uint64_t word)
{
    memcpy(object + offset, &word, sizeof(word));
}

static void make_functions(struct functions *functions)
{
    *functions = (struct functions){.layout = cpython_layout_find(3 << 8 | 11)};
    const struct cpython_layout *layout = functions->layout;
    put_word(functions->lines, 16, LINES_BYTES);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint8_t *name = functions->names[i], *code = functions->code[i];
        char *text = (char *)name + layout->ascii_bytes;
        put_word(name, 16, (uint64_t)snprintf(text, TEXT_BYTES - layout->ascii_bytes, "f%u", i));
        put_word(name, 32, 1 | 1 << 2 | 1 << 5 | 1 << 6);
        put_word(code, 8, address_of(functions));
        put_word(code, layout->code_qualified_name, address_of(name));
        put_word(code, layout->code_file, address_of(name));
        put_word(code, layout->code_lines, address_of(functions->lines));
    }
}

static struct cpython_codes *create_codes(const struct functions *functions,
                                          struct code_budget *budget, uint64_t owner)
{
    const struct code_quota quota = {.budget = budget, .owner = owner};
    return cpython_codes_create(functions->layout, (uint32_t)getpid(), address_of(functions),
                                &quota);
}

static struct span find_function(const struct functions *functions, struct cpython_codes *codes,
                                 uint32_t number)
{
    const struct interpreter_layout *frames = &functions->layout->frames;
    const uint8_t *code = functions->code[number];
    uint64_t words[3];
    for (int i = 0; i < 3; i++)
        memcpy(&words[i], code + frames->code_start + frames->code_words[i], sizeof(words[i]));
    const struct interpreted_frame frame = {
        .code = address_of(code), .check = interpreter_check(words[0], words[1], words[2])};
    struct interpreter_name name;
    char wanted[16];
    assert_true(cpython_codes_find(codes, (uint32_t)getpid(), &frame, &name));
    snprintf(wanted, sizeof(wanted), "f%u", number);
    assert_true(span_equal_text(name.function, wanted));
    return name.function;
}

/* All processes get the names, whether the cache keeps them or not. */
static void processes_share_the_budget_of_known_functions(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    static struct functions functions;
    struct code_budget budget;
    struct cpython_codes *codes[COUNT];
    make_functions(&functions);
    code_budget_init(&budget, 8 << 20);
    for (int i = 0; i < COUNT; i++) {
        codes[i] = create_codes(&functions, &budget, 1000);
        for (uint32_t j = 0; j < FUNCTIONS; j++) {
            (void)find_function(&functions, codes[i], j);
            assert_true(budget.used_bytes <= 6 << 20);
        }
    }
    struct cpython_codes *others = create_codes(&functions, &budget, 1001);
    const uint8_t *kept = find_function(&functions, others, 0).data;
    (void)find_function(&functions, others, 1);
    assert_ptr_equal(find_function(&functions, others, 0).data, kept);
    cpython_codes_unref(others);
    for (int i = 0; i < COUNT; i++)
        cpython_codes_unref(codes[i]);
    assert_int_equal(budget.used_bytes, 0);
    code_budget_fini(&budget);
}

/* The code object at one address is replaced again and again. */
static void replaced_functions_free_their_memory(void **state)
{
    (void)state;
    static struct functions functions;
    struct code_budget budget;
    make_functions(&functions);
    code_budget_init(&budget, 64 << 20);
    struct cpython_codes *codes = create_codes(&functions, &budget, 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t first_line = i;
        memcpy(functions.code[0] + functions.layout->code_first_line, &first_line,
               sizeof(first_line));
        (void)find_function(&functions, codes, 0);
        assert_true(budget.used_bytes <= 6 << 20);
    }
    cpython_codes_unref(codes);
    code_budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_found_by_increments),
        cmocka_unit_test(lines_are_found_by_ranges),
        cmocka_unit_test(lines_are_found_by_locations),
        cmocka_unit_test(lines_below_1_become_1),
        cmocka_unit_test(characters_become_utf8),
        cmocka_unit_test(bits_determine_the_form_of_a_string),
        cmocka_unit_test(layouts_fit_what_the_kernel_reads),
        cmocka_unit_test(layouts_are_read_from_the_process),
        cmocka_unit_test(a_layout_from_the_process_is_checked),
        cmocka_unit_test(processes_share_the_budget_of_known_functions),
        cmocka_unit_test(replaced_functions_free_their_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
