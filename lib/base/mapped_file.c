#include "lib/base/mapped_file.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The regions that are mapped now. The signal handler may run at any moment, so it can take no
 * lock: regions are prepended with an atomic exchange and never freed. A closed region has begin 0;
 * it is in a second list, with a lock, for the next mapped_file_open.
 */
struct mapped_region {
    struct mapped_region *next;
    struct mapped_region *next_closed;
    _Atomic uintptr_t begin; /* 0: free */
    _Atomic uintptr_t end;
    atomic_bool has_failed;
};

static _Atomic(struct mapped_region *) regions;
static struct mapped_region *closed_regions;
static pthread_mutex_t closed_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards closed_regions */
static struct sigaction previous_action;
static uintptr_t page_bytes;
static pthread_mutex_t install_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct mapped_region *find_region(uintptr_t address)
{
    for (struct mapped_region *region = atomic_load(&regions); region; region = region->next) {
        const uintptr_t begin = atomic_load(&region->begin);
        if (begin && address >= begin && address < atomic_load(&region->end))
            return region;
    }
    return NULL;
}

/* Async-signal-safe: atomic loads and system calls only. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int error = errno;
    const uintptr_t address = (uintptr_t)info->si_addr;
    struct mapped_region *region = find_region(address);
    if (region) {
        void *page = (void *)(address & ~(page_bytes - 1));
        atomic_store(&region->has_failed, true);
        if (mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            page) {
            errno = error;
            return;
        }
    }
    /* The instruction runs again and raises the signal again, now with the previous action. */
    sigaction(number, &previous_action, NULL);
    errno = error;
}

/* Installs the handler, also if another one has replaced it meanwhile, as test frameworks do. */
static void install_handler(void)
{
    const struct sigaction action = {.sa_sigaction = on_bus_error,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction current;
    pthread_mutex_lock(&install_mutex);
    if (sigaction(SIGBUS, NULL, &current) == 0 && current.sa_sigaction != on_bus_error) {
        page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        previous_action = current;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&install_mutex);
}

static struct mapped_region *take_region(void)
{
    pthread_mutex_lock(&closed_mutex);
    struct mapped_region *region = closed_regions;
    if (region)
        closed_regions = region->next_closed;
    pthread_mutex_unlock(&closed_mutex);
    if (region)
        return region;
    region = mem_new(struct mapped_region, 1);
    region->next = atomic_load(&regions);
    while (!atomic_compare_exchange_weak(&regions, &region->next, region))
        ;
    return region;
}

enum err_code mapped_file_open(int fd, size_t size, struct mapped_file *ret_file, struct err *err)
{
    install_handler();
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return err_set_errno(err, ERR_IO, "mapping a file of %zu bytes", size);
    struct mapped_region *region = take_region();
    atomic_store(&region->has_failed, false);
    atomic_store(&region->end, (uintptr_t)memory + size);
    atomic_store(&region->begin, (uintptr_t)memory); /* last: the handler sees the region now */
    *ret_file = (struct mapped_file){.bytes = span_of(memory, size), .region = region};
    return ERR_NONE;
}

enum err_code mapped_file_check(const struct mapped_file *file, struct err *err)
{
    if (!file->region || !atomic_load(&file->region->has_failed))
        return ERR_NONE;
    err_set(err, ERR_IO, "a part of the file cannot be read: the disk may be failing");
    err->is_unreadable = true;
    return ERR_IO;
}

void mapped_file_close(struct mapped_file *file)
{
    if (!file->region)
        return;
    atomic_store(&file->region->begin, 0); /* before another mapping can have these addresses */
    munmap((void *)(uintptr_t)file->bytes.data, file->bytes.size);
    pthread_mutex_lock(&closed_mutex);
    file->region->next_closed = closed_regions;
    closed_regions = file->region;
    pthread_mutex_unlock(&closed_mutex);
    *file = (struct mapped_file){0};
}
