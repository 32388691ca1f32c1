#include "agent/kernel/kernel_program_internal.h"
#include "agent/kernel/unwind_memory.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { SHARD_WINDOW_BYTES = 256 << 10 }; /* a multiple of every page size */

enum {
    RULES_BYTES = (UNWIND_RULE_COUNT + 1) * sizeof(struct unwind_rule),
    CHUNKS_BYTES = UNWIND_CHUNK_COUNT * sizeof(struct unwind_chunk),
};

static void *map_memory(int fd, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_window(struct kernel_program *program)
{
    if (program->window.bytes)
        munmap(program->window.bytes, SHARD_WINDOW_BYTES);
    program->window.bytes = NULL;
}

void kernel_program_close_memory(struct kernel_program *program)
{
    if (program->rules)
        munmap(program->rules, RULES_BYTES);
    if (program->chunks)
        munmap(program->chunks, CHUNKS_BYTES);
    kernel_program_unmap_shards(program);
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        os_close(program->shard_fds[i]);
}

enum err_code kernel_program_open_memory(struct kernel_program *program, struct err *err)
{
    program->rules = map_memory(kernel_program_map(program, "unwind_rules"), RULES_BYTES);
    program->chunks = map_memory(kernel_program_map(program, "unwind_chunks"), CHUNKS_BYTES);
    return program->rules && program->chunks
               ? ERR_NONE
               : kernel_program_fail(errno, "mapping the unwind tables", err);
}

static bool create_shard(void *context, uint32_t index)
{
    struct kernel_program *program = context;
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
    const int fd =
        bpf_map_create(BPF_MAP_TYPE_ARRAY, "shard", sizeof(index), UNWIND_SHARD_BYTES, 1, &options);
    if (fd < 0 || bpf_map_update_elem(kernel_program_map(program, "unwind_shards"), &index, &fd,
                                      BPF_ANY) != 0) {
        os_close(fd);
        return false;
    }
    program->shard_fds[index] = fd;
    return true;
}

static void unmap_shard(struct kernel_program *program, uint32_t index)
{
    if (program->shards[index])
        munmap(program->shards[index], UNWIND_SHARD_BYTES);
    program->shards[index] = NULL;
}

/* The kernel frees the shard once no BPF program reads it any more. */
static void destroy_shard(void *context, uint32_t index)
{
    struct kernel_program *program = context;
    if (program->window.bytes && program->window.shard == index)
        unmap_window(program);
    unmap_shard(program, index);
    (void)bpf_map_delete_elem(kernel_program_map(program, "unwind_shards"), &index);
    os_close(program->shard_fds[index]);
    program->shard_fds[index] = -1;
}

static bool map_window(struct kernel_program *program, uint32_t shard, uint32_t offset)
{
    struct shard_window *window = &program->window;
    if (window->bytes && window->shard == shard && window->offset == offset)
        return true;
    unmap_window(program);
    void *memory = mmap(NULL, SHARD_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                        program->shard_fds[shard], (off_t)offset);
    if (memory == MAP_FAILED)
        return false;
    *window = (struct shard_window){.bytes = memory, .shard = shard, .offset = offset};
    return true;
}

static bool write_shard(void *context, uint32_t index, uint32_t offset, const void *bytes,
                        size_t size)
{
    struct kernel_program *program = context;
    const uint8_t *from = bytes;
    while (size) {
        const uint32_t within = offset % SHARD_WINDOW_BYTES;
        const size_t space = SHARD_WINDOW_BYTES - within, part = size < space ? size : space;
        if (!map_window(program, index, offset - within))
            return false;
        memcpy(program->window.bytes + within, from, part);
        from += part;
        offset += (uint32_t)part;
        size -= part;
    }
    return true;
}

void kernel_program_unwind_memory(struct kernel_program *program, struct unwind_memory *ret_memory)
{
    *ret_memory = (struct unwind_memory){.rules = program->rules,
                                         .chunks = program->chunks,
                                         .shard_create = create_shard,
                                         .shard_destroy = destroy_shard,
                                         .shard_write = write_shard,
                                         .context = program,
                                         .shard_limit = UNWIND_SHARD_COUNT};
}

static const uint8_t *read_shard(void *context, uint32_t index)
{
    struct kernel_program *program = context;
    if (index >= UNWIND_SHARD_COUNT || program->shard_fds[index] < 0)
        return NULL;
    if (!program->shards[index]) {
        void *memory =
            mmap(NULL, UNWIND_SHARD_BYTES, PROT_READ, MAP_SHARED, program->shard_fds[index], 0);
        program->shards[index] = memory == MAP_FAILED ? NULL : memory;
    }
    return program->shards[index];
}

void kernel_program_tables(struct kernel_program *program, struct unwind_memory_reader *ret_tables)
{
    *ret_tables = (struct unwind_memory_reader){.rules = program->rules,
                                                .chunks = program->chunks,
                                                .shard = read_shard,
                                                .context = program};
}

void kernel_program_unmap_shards(struct kernel_program *program)
{
    unmap_window(program);
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        unmap_shard(program, i);
}
