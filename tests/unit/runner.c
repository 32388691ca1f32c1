/*
 * runner: the program that contains all unit tests. Each test_*.c has a main function, which
 * tests/unit/test.h renames and registers here, so that the code under test is linked once instead
 * of once per file. The program runs one file: that with the name of the program (the Makefile
 * creates a link test_x for each test_x.c) or that of its only argument. Each file runs in its own
 * process, so a test may change the locale, signals or limits. The environment variable
 * TEST_FILTER, a pattern of cmocka (* and ?), selects functions. Without a name the program lists
 * the files.
 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_file *files;

void test_file_register(struct test_file *file)
{
    file->next = files;
    files = file;
}

int test_rounds(int full)
{
    return getenv("TEST_FULL") ? full : full / 8;
}

static const struct test_file *find_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (const struct test_file *file = files; file; file = file->next)
        if (strcmp(file->name, name) == 0)
            return file;
    return NULL;
}

int main(int count, char **arguments)
{
    const struct test_file *file = find_file(arguments[0]);
    if (!file && count == 2)
        file = find_file(arguments[1]);
    if (!file) {
        for (file = files; file; file = file->next)
            puts(file->name);
        return count == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    const char *filter = getenv("TEST_FILTER");
    if (filter)
        cmocka_set_test_filter(filter);
    return file->run();
}
