/*
 * memory_reader: a process that reads the memory of other processes for this one.
 *
 * Reading a page can wait for ever, and then not even SIGKILL ends the reader: the page may belong
 * to a file of a FUSE file system whose server, a program of any user, does not respond. So a
 * helper process reads. If it is blocked for a few seconds, it is abandoned, another one takes its
 * place, and processes of the same user are not read for some minutes.
 *
 * The helper is a fork that shares nothing with its parent but a socket and a buffer, and that ends
 * with it. Threads: any; one read at a time.
 */
#ifndef AGENT_PROCESS_MEMORY_READER_H
#define AGENT_PROCESS_MEMORY_READER_H

#include <stddef.h>
#include <stdint.h>

enum { MEMORY_READER_MAX_BYTES = 256 << 10 };

/* Reads up to size bytes, at most MEMORY_READER_MAX_BYTES. Returns how many were readable from
 * address on; 0: none, or the process may not be read now. */
size_t memory_reader_read(uint32_t process_id, uint64_t address, void *to, size_t size);

#endif
