/*
 * memory_info: the memory of the host, for defaults that fit small and large hosts. Threads: any.
 */
#ifndef API_CORE_MEMORY_INFO_H
#define API_CORE_MEMORY_INFO_H

#include <stdint.h>

/* Physical memory, or the limit of the control group (version 2) of this process if that is less.
 */
uint64_t memory_info_total_bytes(void);

/* memory_info_total_bytes() / divisor, but at least low and at most high. */
uint64_t memory_info_share_bytes(uint64_t divisor, uint64_t low, uint64_t high);

#endif
