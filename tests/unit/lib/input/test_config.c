#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/input/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/perfolio-config-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof(path), "%s/a/b/file.ini", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void a_missing_file_is_empty(void **state)
{
    (void)state;
    config_auto config = NULL;
    struct err err;
    assert_int_equal(config_load(path, &config, &err), ERR_NONE);
    assert_null(config_get(config, "s", "k"));
    assert_null(config_section(config, 0));
    assert_true(config_is_private(config));
}

static void saves_and_loads(void **state)
{
    (void)state;
    struct err err;
    struct stat status;
    config_auto config = NULL;
    assert_int_equal(config_load(path, &config, &err), ERR_NONE);
    config_set(config, "one", "a", "1");
    config_set(config, "two", "b", "with = signs, [brackets] and # marks");
    config_set(config, "one", "c", "3");
    config_set(config, "", "top", "level");
    config_set(config, "one", "a", "changed");
    config_set(config, "one", "gone", "x");
    config_set(config, "one", "gone", NULL);
    assert_int_equal(config_save(config, &err), ERR_NONE);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat(folder, &status), 0);
    config_auto again = NULL;
    assert_int_equal(config_load(path, &again, &err), ERR_NONE);
    assert_string_equal(config_get(again, "one", "a"), "changed");
    assert_string_equal(config_get(again, "one", "c"), "3");
    assert_string_equal(config_get(again, "two", "b"), "with = signs, [brackets] and # marks");
    assert_string_equal(config_get(again, "", "top"), "level");
    assert_null(config_get(again, "one", "gone"));
    assert_string_equal(config_section(again, 1), "one");
    assert_string_equal(config_section(again, 2), "two");
    assert_null(config_section(again, 3));
    const char *section;
    assert_string_equal(config_key(again, 0, &section), "top");
    assert_string_equal(section, "");
    assert_string_equal(config_key(again, 3, &section), "b");
    assert_string_equal(section, "two");
    assert_null(config_key(again, 4, &section));
    config_remove_section(again, "one");
    assert_null(config_get(again, "one", "c"));
}

static void values_that_cannot_be_read_back_are_not_written(void **state)
{
    (void)state;
    char long_value[400];
    memset(long_value, 'x', sizeof(long_value) - 1);
    long_value[sizeof(long_value) - 1] = '\0';
    const char *const values[] = {"two\nlines", "a ; comment", " blanks ", long_value};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct err err;
        config_auto config = NULL;
        assert_int_equal(config_load(path, &config, &err), ERR_NONE);
        config_set(config, "one", "a", values[i]);
        assert_int_equal(config_save(config, &err), ERR_INVALID);
        config_auto again = NULL;
        assert_int_equal(config_load(path, &again, &err), ERR_NONE);
        assert_string_equal(config_get(again, "one", "a"), "changed");
    }
}

static void a_malformed_line_is_named(void **state)
{
    (void)state;
    struct err err;
    struct config *config = NULL;
    FILE *file = fopen(path, "w");
    fputs("[s]\nk = v\nrubbish\n", file);
    fclose(file);
    assert_int_equal(config_load(path, &config, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "line 3"));
    assert_null(config);
}

static void files_that_others_may_read_are_reported(void **state)
{
    (void)state;
    struct err err;
    config_auto config = NULL;
    FILE *file = fopen(path, "w");
    fputs("[s]\nk = v\n", file);
    fclose(file);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(config_load(path, &config, &err), ERR_NONE);
    assert_false(config_is_private(config));
    assert_int_equal(config_save(config, &err), ERR_NONE);
    assert_true(config_is_private(config));
}

static void folders_are_those_of_the_specification(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct err err;
    const char *found;
    setenv("HOME", "/home/someone", 1);
    unsetenv("XDG_CONFIG_HOME");
    setenv("XDG_STATE_HOME", "relative/is/ignored", 1);
    assert_int_equal(config_path(CONFIG_FOLDER_CONFIG, "c.ini", arena, &found, &err), ERR_NONE);
    assert_string_equal(found, "/home/someone/.config/perfolio/c.ini");
    assert_int_equal(config_path(CONFIG_FOLDER_STATE, "s/t", arena, &found, &err), ERR_NONE);
    assert_string_equal(found, "/home/someone/.local/state/perfolio/s/t");
    setenv("XDG_CONFIG_HOME", "/etc/me", 1);
    assert_int_equal(config_path(CONFIG_FOLDER_CONFIG, "c.ini", arena, &found, &err), ERR_NONE);
    assert_string_equal(found, "/etc/me/perfolio/c.ini");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_file_is_empty),
        cmocka_unit_test(saves_and_loads),
        cmocka_unit_test(values_that_cannot_be_read_back_are_not_written),
        cmocka_unit_test(a_malformed_line_is_named),
        cmocka_unit_test(files_that_others_may_read_are_reported),
        cmocka_unit_test(folders_are_those_of_the_specification),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
