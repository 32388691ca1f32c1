/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cpu_bounded: cpu.bpf.c for Linux 5.10 to 5.16: see there. */
#define CPU_BEFORE_5_17 1
#include "bpf/cpu.bpf.c"
