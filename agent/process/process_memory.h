/*
 * process_memory: reads the memory of another process, in a helper process (helper_process.h).
 *
 * Addresses may come from that process, so any value is allowed. The process keeps running: bytes
 * of one read may be from different times. Processes of other users need CAP_SYS_PTRACE.
 * Threads: any.
 */
#ifndef AGENT_PROCESS_PROCESS_MEMORY_H
#define AGENT_PROCESS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* size: at most HELPER_PROCESS_BYTES. False: not all of size bytes could be read. */
bool process_memory_read(uint32_t process_id, uint64_t address, void *to, size_t size);
/* Reads up to size bytes, at most HELPER_PROCESS_BYTES. Returns how many were readable from address
 * on; 0: none. */
size_t process_memory_read_some(uint32_t process_id, uint64_t address, void *to, size_t size);

static inline bool process_memory_word(uint32_t process_id, uint64_t address, uint64_t *ret_word)
{
    return process_memory_read(process_id, address, ret_word, sizeof(*ret_word));
}

#endif
