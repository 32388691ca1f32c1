/*
 * bad_sector: a library for LD_PRELOAD that makes mapped files unreadable, as a bad sector does:
 * the first access to such a mapping raises SIGBUS.
 *
 * BAD_SECTOR names the files: those whose path contains this text. A mapping of such a file becomes
 * one of an empty file in memory. Read calls are not affected, as when a sector becomes bad after
 * it was read.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void *mmap_function(void *address, size_t size, int protection, int flags, int fd,
                            off_t offset);

static int is_bad(int fd)
{
    const char *text = getenv("BAD_SECTOR");
    char link[64], path[4096];
    if (fd < 0 || !text || !*text)
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, path, sizeof(path) - 1);
    path[size > 0 ? size : 0] = '\0';
    return strstr(path, text) != NULL;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    mmap_function *real;
    *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    if (!is_bad(fd))
        return real(address, size, protection, flags, fd, offset);
    const int empty = memfd_create("bad sector", MFD_CLOEXEC);
    void *memory = real(address, size, protection, flags, empty, 0);
    close(empty);
    return memory;
}
