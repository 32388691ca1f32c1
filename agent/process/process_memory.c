#include "agent/process/process_memory.h"

#include "agent/process/helper_process.h"
#include "agent/process/process_file.h"

#include <sys/uio.h>

enum { PAGE_BYTES = 4096, PIECES_MAX = HELPER_PROCESS_BYTES / PAGE_BYTES + 1 };

struct memory_range {
    uint32_t process_id;
    uint64_t address;
    uint64_t bytes;
};

/* Runs in the helper. A transfer ends at the first piece that cannot be read whole: pieces end with
 * pages. */
static int64_t read_range(void *buffer, int *ret_fd)
{
    const struct memory_range range = *(const struct memory_range *)buffer;
    struct iovec pieces[PIECES_MAX];
    size_t count = 0, sum = 0;
    (void)ret_fd;
    while (sum < range.bytes && count < PIECES_MAX && range.address + sum >= range.address) {
        const uint64_t at = range.address + sum;
        const size_t in_page = PAGE_BYTES - (size_t)(at % PAGE_BYTES);
        const size_t left = (size_t)range.bytes - sum;
        const size_t piece = left < in_page ? left : in_page;
        pieces[count++] = (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = piece};
        sum += piece;
    }
    const struct iovec local = {.iov_base = buffer, .iov_len = sum};
    return process_vm_readv((pid_t)range.process_id, &local, 1, pieces, count, 0);
}

size_t process_memory_read_some(uint32_t process_id, uint64_t address, void *to, size_t size)
{
    const struct memory_range range = {.process_id = process_id,
                                       .address = address,
                                       .bytes = size < HELPER_PROCESS_BYTES ? size
                                                                            : HELPER_PROCESS_BYTES};
    const int64_t got =
        helper_process_call(&(struct helper_process_call){.function = read_range,
                                                          .arguments = &range,
                                                          .argument_bytes = sizeof(range),
                                                          .process_id = process_id,
                                                          .find_owner = process_file_owner,
                                                          .data = to,
                                                          .data_bytes = size},
                            NULL);
    return got > 0 ? (size_t)got : 0;
}

bool process_memory_read(uint32_t process_id, uint64_t address, void *to, size_t size)
{
    return process_memory_read_some(process_id, address, to, size) == size;
}
