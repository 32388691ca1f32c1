/*
 * vdso_names: names of the vdso's functions, by its dynamic symbols, from the image that the kernel
 * mapped into this process: all 64-bit processes of a host have the same. Threads: any.
 */
#ifndef AGENT_SYMBOLS_VDSO_SYMBOLS_H
#define AGENT_SYMBOLS_VDSO_SYMBOLS_H

#include "lib/base/buf.h"

#include <stdint.h>

/* The function that has the byte at that distance from the start of the vdso; of several names the
 * one that the kernel calls it by (__vdso_…, __kernel_…). Empty: none has. The span is for ever. */
struct span vdso_symbols_find(uint64_t offset);

#endif
