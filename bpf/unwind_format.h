/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unwind_format: the formats that user space writes and the unwinder (unwind_core.h) reads.
 *
 * A *rule* describes how to get from a frame to its caller. A *row* states from which address on a
 * rule holds. A *chunk* is the rows of at most 16 MiB of the addresses of one ELF file. A *mapping
 * list* is the executable mappings of one address space. Rows and mapping lists are in *shards*,
 * byte arrays of 4 MiB that user space maps and fills; rules and chunks are in two arrays of their
 * own.
 *
 * A row takes 3 bytes: the low 8 bits of the address and the number of the rule. Rows are in blocks
 * of 256 bytes of addresses, so that a search covers the rows of one block. 16 blocks are a group,
 * whose index and rows are contiguous: between two samples the tables leave the CPU caches, so a
 * look-up costs the cache lines that it touches, one of the chunk's index (for 64 KiB of addresses)
 * and two or three of a group of about 300 bytes. The row that holds at an address is the last one
 * at or below it. If the block has none, it is the block's *carry*: the rule that holds where the
 * block begins.
 *
 * Example: a function at 0x11F0 pushes a register at 0x11F1 and has another rule from 0x11F2 on.
 * Its rows are (0xF0, rule 5) and (0xF2, rule 9) in block 1 of group 1, and block 2 has the
 * carry 9. The address 0x11F1 has rule 5, 0x1210 has rule 9.
 *
 * All offsets are in bytes from the start of a shard:
 *
 *   chunk:  __u32 group[group_count],         at 4-aligned groups: offset of each, 2-aligned
 *   group:  __u16 first_row[17],              of each block among the group's rows, and their count
 *           block[16],                        block i at 34 + 2 * i + 3 * first_row[i]
 *   block:  __u16 carry
 *           __u16 rule[row_count],            not aligned
 *           __u8  address_low[row_count]
 *   list:   __u64 start[count],               at 8-aligned offset; ascending
 *           struct unwind_mapping [count],    right after
 *
 * Data is written before anything refers to it, is not changed while anything refers to it, and is
 * reused only after a grace time (agent/unwind/unwind_maps.h). The reader checks every offset
 * again, so a read of data that changes meanwhile costs one stack and nothing else.
 */
#ifndef BPF_UNWIND_FORMAT_H
#define BPF_UNWIND_FORMAT_H

#include <linux/types.h>

#ifndef UNWIND_ARM64
#if defined(__TARGET_ARCH_arm64) || (!defined(__bpf__) && defined(__aarch64__))
#define UNWIND_ARM64 1
#else
#define UNWIND_ARM64 0
#endif
#endif

enum {
    UNWIND_LEAF_REGISTERS =
        UNWIND_ARM64 ? 32 : 16, /* registers known in the leaf, by DWARF number */
};

/* Options of the unwinder, which user space chooses. */
enum {
    UNWIND_OPTION_FP_ONLY = 1, /* uses frame pointers, no tables */
};

#define UNWIND_SHARD_BYTES (4u << 20)
#define UNWIND_SHARD_COUNT 256u  /* at most; a shard is created when it is needed */
#define UNWIND_RULE_COUNT 16384u /* one more record follows, so that each has a next one */
#define UNWIND_CHUNK_COUNT 4096u
#define UNWIND_CHUNK_SHIFT 24u /* a chunk covers 16 MiB of addresses */
#define UNWIND_CHUNK_BYTES (1u << UNWIND_CHUNK_SHIFT)
#define UNWIND_BLOCK_SHIFT 8u
#define UNWIND_BLOCK_BYTES (1u << UNWIND_BLOCK_SHIFT)
#define UNWIND_GROUP_SHIFT 12u
#define UNWIND_GROUP_BLOCKS (1u << (UNWIND_GROUP_SHIFT - UNWIND_BLOCK_SHIFT))
#define UNWIND_GROUP_HEAD_BYTES (2 * (UNWIND_GROUP_BLOCKS + 1))
#define UNWIND_MAPPINGS_MAX                                                                        \
    (UNWIND_SHARD_BYTES / 32u) /* the most mappings of one address space: they fill one shard */

/* How the canonical frame address (CFA), the caller's stack pointer, is found. */
enum unwind_cfa {
    UNWIND_CFA_NONE,     /* no table covers this address: try the frame pointer */
    UNWIND_CFA_STOP,     /* the stack ends; cfa_offset is an enum unwind_stop */
    UNWIND_CFA_SP,       /* sp + cfa_offset */
    UNWIND_CFA_FP,       /* fp + cfa_offset */
    UNWIND_CFA_PLT,      /* x86-64: sp + 8, and 8 more from byte cfa_offset of 16 on */
    UNWIND_CFA_SP_DEREF, /* *(sp + cfa_offset) + extra.cfa_add */
    UNWIND_CFA_FP_DEREF, /* *(fp + cfa_offset) + extra.cfa_add */
    UNWIND_CFA_REGISTER, /* extra.cfa_register + cfa_offset; in the leaf only */
    UNWIND_CFA_SIGNAL,   /* the kernel's signal frame at sp + cfa_offset: all registers from it */
    UNWIND_CFA_LEAF,     /* Go: a leaf has no frame; a caller has one, found by its frame pointer */
};

/* Where the caller's frame pointer is stored. */
enum unwind_fp {
    UNWIND_FP_SAME,
    UNWIND_FP_AT_CFA,   /* *(CFA + fp_offset) */
    UNWIND_FP_AT_SP,    /* *(sp + fp_offset) */
    UNWIND_FP_AT_FP,    /* *(fp + fp_offset) */
    UNWIND_FP_UNKNOWN,  /* undefined, or by a rule of another form */
    UNWIND_FP_REGISTER, /* register fp_offset; in the leaf only */
};

/* Where the return address is stored. */
enum unwind_ra {
    UNWIND_RA_DEFAULT,  /* x86-64: *(CFA - 8); arm64: after the frame pointer, as in a frame record
                         */
    UNWIND_RA_LINK,     /* arm64: in the link register */
    UNWIND_RA_AT_CFA,   /* *(CFA + extra.ra_offset) */
    UNWIND_RA_REGISTER, /* register extra.ra_offset; in the leaf only */
};

/*
 * Set while an exception unwinder (__builtin_eh_return) leaves for a handler. The address of the
 * handler, which does not follow a call, is then stored instead of the return address. The
 * registers are already those of the handler's frame.
 */
#define UNWIND_RA_IS_HANDLER 8u
#define UNWIND_RA_KIND(saved) (((saved) >> 4) & 7)

/* 8 bytes. If a comment above names extra, the next record is a struct unwind_rule_extra. */
struct unwind_rule {
    __s32 cfa_offset;
    __s16 fp_offset;
    __u8 cfa;   /* enum unwind_cfa */
    __u8 saved; /* enum unwind_fp in bits 0..3, enum unwind_ra and UNWIND_RA_IS_HANDLER above */
};

struct unwind_rule_extra {
    __s32 cfa_add;
    __s16 ra_offset;
    __u8 cfa_register; /* DWARF number */
    __u8 unused;
};

/* Rule numbers with a fixed meaning in every table. */
enum {
    UNWIND_RULE_NONE =
        0, /* { UNWIND_CFA_NONE }: start of addresses that the table does not cover */
    UNWIND_RULE_ROOT = 1, /* { UNWIND_CFA_STOP, UNWIND_STOP_ROOT } */
    UNWIND_RULE_FULL = 2, /* { UNWIND_CFA_STOP, UNWIND_STOP_RULES_FULL } */
    UNWIND_RULE_FIXED_COUNT,
    UNWIND_RULE_UNKNOWN = UNWIND_RULE_COUNT, /* no rows, or none yet; treated as UNWIND_RULE_NONE */
};

struct unwind_chunk {
    __u32 shard;
    __u32 first_group; /* groups before it and after the last one have no rows */
    __u32 group_count;
    __u32 groups; /* byte offset in the shard */
    __u32 bytes;  /* size of the chunk in the shard, from groups on; for user space */
    __u32 unused[3];
};

enum {
    UNWIND_MAPPING_FP = 1, /* no table, and none will come: JIT code */
};

/* An executable mapping; its start is in the array that comes before. */
struct unwind_mapping {
    __u64 end;
    __u64 bias; /* address - bias = offset in the table; wraps */
    __u32 first_chunk;
    __u16 chunk_count; /* 0: no table, or none yet: unwound by frame pointer */
    __u16 flags;
};

/* The mappings of one address space; the agent keeps one per process in a map. */
struct unwind_mapping_list {
    __u32 shard;
    __u32 offset;
    __u32 count;      /* 0: unknown, frame pointers are followed unchecked */
    __u32 generation; /* different for each list: part of the key of a memo; 0: no memo is used */
};

/*
 * A remembered rule for the address of a caller in a mapping list. One cache line replaces the
 * reads of the mappings, index, rows and rules that lead to the rule.
 *
 * CPUs read and write the two words without a lock. A reader accepts them only if check ^ rule is
 * the key of its mapping list and address; words of two different writers do not match any key,
 * except by a collision of 64 bits.
 *
 * A memo is never removed, because it stays valid: the mappings and rows of a list do not change
 * once they are written, and "no rows yet" is not remembered. If rows that lacked rules are filled
 * again, the list is published again with another generation afterwards. The memo contains the rule
 * itself rather than its number, because the number is reused once no table has the rule.
 */
struct unwind_memo {
    __u64 check;
    __u64 rule; /* the bytes of a struct unwind_rule that needs no extra */
};

#define UNWIND_MEMO_BITS 15
#define UNWIND_MEMO_COUNT (1u << UNWIND_MEMO_BITS)

/* Why a stack ended. unwind_stop_name() (agent/unwind/unwind_names.h) has the names. */
enum unwind_stop {
    UNWIND_CONTINUE = 0,
    UNWIND_STOP_ROOT,          /* complete: the return address is undefined (_start, clone) */
    UNWIND_STOP_ROOT_ZERO,     /* complete: frame pointer or return address is 0 */
    UNWIND_STOP_FRAME_LIMIT,   /* more frames than a record holds */
    UNWIND_STOP_UNMAPPED,      /* the address is in no known executable mapping */
    UNWIND_STOP_FRAME_POINTER, /* no table covers it, and the frame pointer points to no frame */
    UNWIND_STOP_STACK_READ,    /* the stack could not be read: paged out or not mapped */
    UNWIND_STOP_NO_PROGRESS,   /* the caller's frame is not above this one */
    UNWIND_STOP_REGISTER,      /* the rule needs a register that is not known in a caller */
    UNWIND_STOP_EXPRESSION,    /* the rule is a DWARF expression of another form than those above */
    UNWIND_STOP_UNSUPPORTED,   /* the rule's offsets or registers do not fit a row */
    UNWIND_STOP_CORRUPT,       /* the file's call frame information is broken here */
    UNWIND_STOP_RULES_FULL,    /* there was no space for the rule */
    UNWIND_STOP_TABLE,         /* the table itself is inconsistent, perhaps replaced meanwhile */
    UNWIND_STOP_COMPAT,        /* a 32-bit process */
    UNWIND_STOP_COUNT
};

#endif
