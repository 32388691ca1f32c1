#include "tests/unit/test.h"

#include "agent/process/process_memory.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static uint8_t numbers[100000];

static void reads_another_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(numbers); i++)
        numbers[i] = (uint8_t)(i * 7);
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    uint8_t *bytes = mem_alloc(sizeof(numbers), 1);
    const uint64_t address = (uint64_t)(uintptr_t)numbers;
    assert_true(process_memory_read((uint32_t)child, address, bytes, sizeof(numbers)));
    assert_memory_equal(bytes, numbers, sizeof(numbers));
    assert_false(process_memory_read((uint32_t)child, 1, bytes, 8));
    assert_false(process_memory_read((uint32_t)child, UINT64_MAX - 3, bytes, 8));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(process_memory_read((uint32_t)child, address, bytes, 8));
    mem_free(bytes);
}

/* Reads up to the first page that cannot be read. */
static void reads_as_much_as_is_readable(void **state)
{
    (void)state;
    uint8_t bytes[3 * PAGE_BYTES];
    uint8_t *memory =
        mmap(NULL, 3 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 'x', 3 * PAGE_BYTES);
    munmap(memory + 2 * PAGE_BYTES, PAGE_BYTES);
    const uint64_t address = (uint64_t)(uintptr_t)memory + 100;
    assert_int_equal(process_memory_read_some((uint32_t)getpid(), address, bytes, sizeof(bytes)),
                     2 * PAGE_BYTES - 100);
    munmap(memory, 2 * PAGE_BYTES);
}

/* A page of a userfaultfd that nobody handles: a read of it never returns. False: the kernel
 * refuses userfaultfd. */
static bool map_endless(uint8_t **ret_page)
{
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    *ret_page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {
        .range = {.start = (uint64_t)(uintptr_t)*ret_page, .len = PAGE_BYTES},
        .mode = UFFDIO_REGISTER_MODE_MISSING};
    return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

static void a_read_that_does_not_end_is_given_up(void **state)
{
    (void)state;
    int fds[2];
    uint8_t *page = NULL, byte;
    assert_int_equal(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (!map_endless(&page))
            page = NULL;
        if (write(fds[1], &page, sizeof(page)) == sizeof(page))
            pause();
        _exit(0);
    }
    assert_int_equal(read(fds[0], &page, sizeof(page)), sizeof(page));
    close(fds[0]);
    close(fds[1]);
    if (!page || geteuid() != 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        skip();
    }
    const int64_t begin_ns = clock_monotonic_ns();
    assert_false(
        process_memory_read((uint32_t)child, (uint64_t)(uintptr_t)page, &byte, sizeof(byte)));
    const int64_t first_ns = clock_monotonic_ns() - begin_ns;
    /* Reads of that owner's processes fail at once for a while; a process of root is its own owner,
     * so other processes are still read. */
    assert_false(process_memory_read((uint32_t)child, (uint64_t)(uintptr_t)numbers, &byte, 1));
    assert_true(process_memory_read((uint32_t)getpid(), (uint64_t)(uintptr_t)numbers, &byte, 1));
    assert_true(first_ns > CLOCK_NS_PER_S);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_another_process), cmocka_unit_test(reads_as_much_as_is_readable),
        cmocka_unit_test(a_read_that_does_not_end_is_given_up), /* last, because reads of this owner
                                                                   then fail for a while */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
