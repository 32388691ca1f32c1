/*
 * vdso_symbols: names of the functions of the vDSO, from the dynamic symbols of the image that the
 * kernel has mapped into this process. All 64-bit processes of a host have the same image. Threads:
 * any.
 */
#ifndef AGENT_SYMBOLS_VDSO_SYMBOLS_H
#define AGENT_SYMBOLS_VDSO_SYMBOLS_H

#include "lib/base/buf.h"

#include <stdint.h>

/* The name of the function that contains the byte at offset in the vDSO. If it has several names,
 * the kernel's own (__vdso_…, __kernel_…) is returned. Empty: none. The span remains valid until
 * the process ends. */
struct span vdso_symbols_find(uint64_t offset);

#endif
