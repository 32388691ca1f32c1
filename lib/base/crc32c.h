/*
 * crc32c: the checksum of stored bytes (Castagnoli's polynomial, RFC 3720 appendix B.4).
 *
 * With the processor's own instruction where there is one, by tables elsewhere; both give the same.
 * Threads: any.
 */
#ifndef LIB_BASE_CRC32C_H
#define LIB_BASE_CRC32C_H

#include "lib/base/buf.h"

#include <stdint.h>

/* Of bytes alone. */
uint32_t crc32c(struct span bytes);
/* Goes on from crc, which was that of what stands before bytes. */
uint32_t crc32c_extend(uint32_t crc, struct span bytes);
/* The twin without the instruction, for tests. */
uint32_t crc32c_extend_portable(uint32_t crc, struct span bytes);

#endif
