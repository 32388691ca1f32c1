/*
 * mem: the heap. Only this module and chunk_pool call malloc.
 *
 * When memory runs out, the process ends with a message; limits on requests prevent that earlier.
 * All sizes are checked for overflow. Threads: any.
 */
#ifndef LIB_BASE_MEM_H
#define LIB_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed heap memory for objects that outlive a request. mem_free(NULL) is a no-op. */
void *mem_alloc(size_t count, size_t size);
/* Grows or shrinks an array to count elements. New elements are not zeroed. */
void *mem_resize(void *memory, size_t count, size_t size);
void mem_free(void *memory);
char *mem_strdup(const char *text);
/*
 * Grows a short-lived buffer. Large blocks come from a pool of blocks that arenas and other buffers
 * have released. Returns a buffer of at least wanted bytes, which is larger than *bytes, and stores
 * its size in *bytes. The first `used` bytes are kept, the rest is not zeroed. buffer NULL with
 * *bytes 0 allocates a new one.
 */
void *mem_grow_buffer(void *buffer, size_t used, size_t *bytes, size_t wanted);
void mem_free_buffer(void *buffer, size_t bytes); /* NULL is a no-op */
/* Returns freed memory of all threads to the system. Call it after many small pieces were freed,
 * which the allocator would otherwise keep. Scans the whole heap: do not call it per request. */
void mem_trim(void);

#define mem_new(type, count) ((type *)mem_alloc((count), sizeof(type)))

#endif
