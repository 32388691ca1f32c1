#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/base/low_priority.h"
#include "lib/base/mapped_file.h"
#include "lib/base/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, FILE_PAGES = 4, FILE_BYTES = FILE_PAGES * PAGE_BYTES };

/* A file in memory with FILE_BYTES of 'x', mapped. */
static int map_new_file(struct mapped_file *file)
{
    struct err err;
    char page[PAGE_BYTES];
    const int fd = memfd_create("file", MFD_CLOEXEC);
    assert_true(fd >= 0);
    memset(page, 'x', sizeof(page));
    for (int i = 0; i < FILE_PAGES; i++)
        assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    assert_int_equal(mapped_file_open(fd, FILE_BYTES, file, &err), ERR_NONE);
    return fd;
}

static size_t count(struct span bytes, char wanted)
{
    size_t found = 0;
    for (size_t i = 0; i < bytes.size; i++)
        found += bytes.data[i] == (uint8_t)wanted;
    return found;
}

static void a_page_that_cannot_be_read_is_zeros_and_an_error(void **state)
{
    (void)state;
    struct err err = {0};
    mapped_file_auto file = {0};
    const int fd = map_new_file(&file);
    assert_int_equal(count(file.bytes, 'x'), FILE_BYTES);
    assert_int_equal(mapped_file_check(&file, &err), ERR_NONE);
    /* Pages behind the end of the file raise SIGBUS, as those of a bad sector do. */
    assert_int_equal(ftruncate(fd, PAGE_BYTES), 0);
    assert_int_equal(count(file.bytes, 'x'), PAGE_BYTES);
    assert_int_equal(count(file.bytes, 0), FILE_BYTES - PAGE_BYTES);
    assert_int_equal(mapped_file_check(&file, &err), ERR_IO);
    assert_true(err.is_unreadable);
    close(fd);
}

static void a_failure_does_not_extend_to_the_next_file(void **state)
{
    (void)state;
    struct err err;
    for (int i = 0; i < 100; i++) {
        mapped_file_auto file = {0};
        const int fd = map_new_file(&file);
        assert_int_equal(mapped_file_check(&file, &err), ERR_NONE);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(count(file.bytes, 0), FILE_BYTES);
        assert_int_equal(mapped_file_check(&file, &err), ERR_IO);
        close(fd);
    }
}

static void *read_often(void *context)
{
    for (int i = 0; i < 200; i++) {
        struct err err;
        mapped_file_auto file = {0};
        const int fd = map_new_file(&file);
        const bool is_cut = i % 2;
        if (is_cut)
            assert_int_equal(ftruncate(fd, 2 * PAGE_BYTES), 0);
        assert_int_equal(count(file.bytes, 'x'), is_cut ? FILE_BYTES / 2 : FILE_BYTES);
        assert_int_equal(mapped_file_check(&file, &err), is_cut ? ERR_IO : ERR_NONE);
        close(fd);
    }
    return context;
}

static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void closing_a_closed_file_does_nothing(void **state)
{
    (void)state;
    struct mapped_file file = {0};
    mapped_file_close(&file);
    close(map_new_file(&file));
    mapped_file_close(&file);
    mapped_file_close(&file);
}

/* Another mapping is not replaced: the process ends by SIGBUS as without a mapped_file. */
static void other_mappings_still_raise_the_signal(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        struct mapped_file file = {0};
        signal(SIGBUS, SIG_DFL); /* in place of the handler of the test framework */
        const int fd = map_new_file(&file);
        const volatile char *other = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
        if (other == MAP_FAILED || ftruncate(fd, 0) != 0)
            _exit(2);
        _exit(other[0]);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    /* A sanitizer reports the signal and exits with 1. */
    assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) ||
                (WIFEXITED(status) && WEXITSTATUS(status) == 1));
}

/* Reads a page that cannot be read. */
static void read_bad_page(void *context)
{
    struct err err;
    mapped_file_auto file = {0};
    bool *was_noticed = context;
    const int fd = map_new_file(&file);
    assert_int_equal(ftruncate(fd, 0), 0);
    *was_noticed = count(file.bytes, 0) == FILE_BYTES && mapped_file_check(&file, &err) == ERR_IO;
    close(fd);
}

static void read_bad_page_of_part(void *context, size_t part)
{
    read_bad_page((bool *)context + part);
}

static void threads_of_other_modules_may_read_bad_pages(void **state)
{
    (void)state;
    bool was_noticed[8] = {false};
    low_priority_call(LOW_PRIORITY_NICE, read_bad_page, was_noticed);
    assert_true(was_noticed[0]);
    parallel_for(8, read_bad_page_of_part, was_noticed);
    for (size_t i = 0; i < 8; i++)
        assert_true(was_noticed[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_that_cannot_be_read_is_zeros_and_an_error),
        cmocka_unit_test(a_failure_does_not_extend_to_the_next_file),
        cmocka_unit_test(threads_do_not_disturb_each_other),
        cmocka_unit_test(closing_a_closed_file_does_nothing),
        cmocka_unit_test(other_mappings_still_raise_the_signal),
        cmocka_unit_test(threads_of_other_modules_may_read_bad_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
