/*
 * crc32c: the checksum of stored bytes (Castagnoli's polynomial, RFC 3720 appendix B.4).
 *
 * Uses the processor's CRC32 instruction where it exists and lookup tables elsewhere; both give the
 * same result. Threads: any.
 */
#ifndef LIB_BASE_CRC32C_H
#define LIB_BASE_CRC32C_H

#include "lib/base/span.h"

#include <stdint.h>

/* The checksum of bytes. */
uint32_t crc32c(struct span bytes);
/* Continues a checksum: crc is the checksum of the bytes that precede bytes. */
uint32_t crc32c_extend(uint32_t crc, struct span bytes);
/* The implementation without the instruction, for tests. */
uint32_t crc32c_extend_portable(uint32_t crc, struct span bytes);

#endif
