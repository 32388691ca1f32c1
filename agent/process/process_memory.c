#include "agent/process/process_memory.h"

#include <sys/uio.h>

enum { PAGE_BYTES = 4096, PIECES_MAX = 64 };

size_t process_memory_read_some(uint32_t process_id, uint64_t address, void *to, size_t size)
{
    /* A transfer ends at the first piece that cannot be read whole: pieces end with pages. */
    struct iovec pieces[PIECES_MAX];
    size_t count = 0, sum = 0;
    while (sum < size && count < PIECES_MAX && address + sum >= address) {
        const uint64_t at = address + sum;
        const size_t in_page = PAGE_BYTES - (size_t)(at % PAGE_BYTES);
        const size_t piece = size - sum < in_page ? size - sum : in_page;
        pieces[count++] = (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = piece};
        sum += piece;
    }
    const struct iovec local = {.iov_base = to, .iov_len = sum};
    const ssize_t got = process_vm_readv((pid_t)process_id, &local, 1, pieces, count, 0);
    return got > 0 ? (size_t)got : 0;
}

bool process_memory_read(uint32_t process_id, uint64_t address, void *to, size_t size)
{
    const struct iovec local = {.iov_base = to, .iov_len = size};
    const struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
    return process_vm_readv((pid_t)process_id, &local, 1, &remote, 1, 0) == (ssize_t)size;
}
