#include "tests/unit/test.h"

#include "lib/profile/profile.h"
#include "lib/profile/raw_name.h"

#include <stdio.h>

static void check_name(const char *filename, const char *expected)
{
    const struct span strings[] = {filename ? span_text(filename) : (struct span){0}};
    const struct profile_mapping mapping = {.start = 0x400000, .limit = 0x500000};
    const struct profile profile = {
        .strings = strings, .string_count = 1, .mappings = &mapping, .mapping_count = 1};
    const struct profile_location location = {.address = 0x401234, .mapping = 0};
    char text[RAW_NAME_BYTES];
    assert_true(span_equal_text(raw_name_write(&profile, &location, text), expected));
}

/* An empty string of a profile may have no data at all. */
static void a_location_is_named_by_its_binary_and_address(void **state)
{
    (void)state;
    check_name("/usr/bin/program", "program+0x1234");
    check_name("/usr/bin/", "bin+0x1234");
    check_name("", "0x401234");
    check_name(NULL, "0x401234");
}

static void a_long_path_is_cut_at_a_character(void **state)
{
    (void)state;
    char path[2 * RAW_NAME_PATH_BYTES + 1];
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = "\xc3\xa9"[i % 2];
    path[sizeof(path) - 1] = 0;
    char expected[RAW_NAME_BYTES];
    const size_t cut = sizeof(path) - 1 - RAW_NAME_PATH_BYTES;
    snprintf(expected, sizeof(expected), "%s+0x1234", path + cut + cut % 2);
    check_name(path, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_location_is_named_by_its_binary_and_address),
        cmocka_unit_test(a_long_path_is_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
