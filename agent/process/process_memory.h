/*
 * process_memory: reads the memory of another process, at addresses that it may have invented.
 *
 * The process runs on meanwhile: what is read is a picture of some moment, and parts of it of
 * another. Needs CAP_SYS_PTRACE for processes of others. Threads: any.
 */
#ifndef AGENT_PROCESS_PROCESS_MEMORY_H
#define AGENT_PROCESS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of size bytes, or false. */
bool process_memory_read(uint32_t process_id, uint64_t address, void *to, size_t size);
/* As many as there are from address on: 0 for none. */
size_t process_memory_read_some(uint32_t process_id, uint64_t address, void *to, size_t size);

static inline bool process_memory_word(uint32_t process_id, uint64_t address, uint64_t *ret_word)
{
    return process_memory_read(process_id, address, ret_word, sizeof(*ret_word));
}

#endif
