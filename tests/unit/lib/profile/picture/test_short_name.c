/* Short forms of names, from a table that the test of the page also reads. */
#include "tests/unit/test.h"

#include "lib/base/mem.h"
#include "lib/profile/picture/short_name.h"

#include <stdio.h>
#include <string.h>

static void assert_forms(const char *row)
{
    struct short_name made;
    struct span rest = span_text(row), form;
    bool is_more = true;
    span_split(rest, '\t', &form, &(struct span){0});
    short_name_make(form, &made);
    for (size_t i = 0; is_more; i++) {
        is_more = span_split(rest, '\t', &form, &rest);
        if (i >= made.count || !span_equal(made.forms[i], form) ||
            (!is_more && i + 1 != made.count))
            fail_msg("%s: form %zu of %zu is not as in the table: %.*s", row, i, made.count,
                     SPAN_PRINT(made.forms[i < made.count ? i : made.count - 1]));
    }
}

static void names_are_shortened_as_in_the_page(void **state)
{
    (void)state;
    char row[1024];
    size_t count = 0;
    FILE *table = fopen("tests/short_names.txt", "r");
    assert_non_null(table);
    while (fgets(row, sizeof(row), table)) {
        row[strcspn(row, "\n")] = '\0';
        if (row[0] == '\0' || row[0] == '#')
            continue;
        assert_forms(row);
        count++;
    }
    fclose(table);
    assert_true(count > 80);
}

/* Every prefix and suffix of every name: nothing outside is read, and no short form is longer. */
static void parts_of_names_have_short_forms(void **state)
{
    (void)state;
    char row[1024];
    FILE *table = fopen("tests/short_names.txt", "r");
    assert_non_null(table);
    while (fgets(row, sizeof(row), table)) {
        const size_t size = strcspn(row, "\t\n");
        for (size_t i = 0; i <= size; i++) {
            struct short_name made;
            uint8_t *part = mem_new(uint8_t, size - i + 1);
            memcpy(part, row + i, size - i);
            short_name_make(span_of(part, size - i), &made);
            for (size_t j = 1; j < made.count; j++)
                assert_true(made.forms[j].size && made.forms[j].size < made.forms[j - 1].size);
            short_name_make(span_of(row, i), &made);
            assert_true(made.count >= 1);
            mem_free(part);
        }
    }
    fclose(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_shortened_as_in_the_page),
        cmocka_unit_test(parts_of_names_have_short_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
