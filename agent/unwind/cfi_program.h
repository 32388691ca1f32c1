/*
 * cfi_program: runs call frame instructions (DWARF 5, section 6.4.2) and emits a rule of
 * bpf/unwind_format.h for each address at which the rule changes.
 *
 * Only the CFA, the frame pointer and the return address are followed; instructions for other
 * registers are skipped. Expressions are recognised in the few forms that compilers, linkers and
 * hand-written code use: PLT entries, a stack pointer that was saved on the stack, and the kernel's
 * signal frame. cfi_state makes the rule of a state.
 */
#ifndef AGENT_UNWIND_CFI_PROGRAM_H
#define AGENT_UNWIND_CFI_PROGRAM_H

#include "agent/unwind/cfi_cursor.h"
#include "agent/unwind/cfi_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Runs the instructions of the CIE, which set common->initial; false: they are malformed. */
bool cfi_program_prepare(struct cfi_common *common, struct cfi_cursor instructions);

typedef void cfi_row_function(void *context, uint64_t address, const struct cfi_rule *rule);

/*
 * Runs a function's instructions for the addresses from start to end: calls row for start and for
 * each address at which the rule changes, ascending. pc_base: the address of the first byte of the
 * instructions, for pc-relative pointers in them. False: the instructions are malformed; the last
 * row then stops with UNWIND_STOP_CORRUPT, and the previous ones are valid.
 */
bool cfi_program_run(const struct cfi_common *common, struct cfi_cursor instructions,
                     uint64_t pc_base, uint64_t start, uint64_t end, cfi_row_function *row,
                     void *context);

#endif
