/*
 * cfi_program: runs call frame instructions (DWARF 5, section 6.4.2) and says, for each address at
 * which it changes, how to get to the caller, as a rule of bpf/unwind_format.h.
 *
 * Only the CFA, the frame pointer and the return address are followed; what compilers do to other
 * registers is read over. Expressions are known in the few forms that compilers, linkers and
 * hand-written code of today have: PLT entries, a stack pointer that was saved on the stack, and
 * the kernel's signal frame. What cannot be said as a rule becomes one that stops with a reason.
 */
#ifndef AGENT_UNWIND_CFI_PROGRAM_H
#define AGENT_UNWIND_CFI_PROGRAM_H

#include "agent/unwind/cfi_cursor.h"
#include "bpf/unwind_format.h"

#include <stdbool.h>
#include <stdint.h>

/* Both records of a rule; extra is zero where the rule needs none. Rules are made and compared as
 * two words: with small stores before large loads, a table takes a third longer. */
struct cfi_rule {
    union {
        struct {
            struct unwind_rule rule;
            struct unwind_rule_extra extra;
        };
        uint64_t words[2];
    };
};

static inline bool cfi_rule_equal(const struct cfi_rule *a, const struct cfi_rule *b)
{
    return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

/* Does the rule use its extra record? */
static inline bool cfi_rule_has_extra(const struct unwind_rule *rule)
{
    return rule->cfa == UNWIND_CFA_SP_DEREF || rule->cfa == UNWIND_CFA_FP_DEREF ||
           rule->cfa == UNWIND_CFA_REGISTER || UNWIND_RA_KIND(rule->saved) >= UNWIND_RA_AT_CFA;
}

static inline struct cfi_rule cfi_rule_stop(enum unwind_stop stop)
{
    return (struct cfi_rule){.rule = {.cfa = UNWIND_CFA_STOP, .cfa_offset = (int32_t)stop}};
}

enum cfi_cfa_kind { CFI_CFA_UNSET, CFI_CFA_REGISTER, CFI_CFA_DEREF, CFI_CFA_PLT, CFI_CFA_OTHER };
enum cfi_saved_kind {
    CFI_SAVED_SAME,
    CFI_SAVED_UNDEFINED,
    CFI_SAVED_AT_CFA,      /* *(CFA + offset) */
    CFI_SAVED_AT_REGISTER, /* *(reg + offset) */
    CFI_SAVED_IN_REGISTER,
    CFI_SAVED_OTHER, /* an expression of another form */
};

struct cfi_cfa {
    enum cfi_cfa_kind kind;
    uint32_t reg;
    int64_t offset; /* PLT: the byte of an entry from which on 8 bytes more are pushed */
    int64_t add;    /* DEREF: to what was read */
};

struct cfi_saved {
    enum cfi_saved_kind kind;
    uint32_t reg;
    int64_t offset;
};

struct cfi_state {
    struct cfi_cfa cfa;
    struct cfi_saved fp;
    struct cfi_saved ra;
};

/* What is common to the functions of one CIE. */
struct cfi_common {
    bool is_arm64;
    bool is_signal; /* the frame was made by the kernel for a signal handler */
    uint8_t pointer_encoding;
    uint32_t fp; /* DWARF numbers */
    uint32_t sp;
    uint32_t ra;
    uint64_t code_alignment;
    int64_t data_alignment;
    struct cfi_state initial; /* after the CIE's own instructions */
};

/* Sets the registers of the machine and what its ABI says before any instruction. */
void cfi_common_init(struct cfi_common *common, bool is_arm64);

/* Runs the CIE's instructions into common->initial; false when they are broken. */
bool cfi_program_prepare(struct cfi_common *common, struct cfi_cursor instructions);

typedef void cfi_row_function(void *context, uint64_t address, const struct cfi_rule *rule);

/*
 * Runs a function's instructions for the addresses from start to end: calls row for start and for
 * each address at which the rule changes, ascending. pc_base: the address that pc-relative
 * pointers in the instructions are relative to, of their first byte. False when the instructions
 * are broken; the last row then stops with UNWIND_STOP_CORRUPT, and those before hold.
 */
bool cfi_program_run(const struct cfi_common *common, struct cfi_cursor instructions,
                     uint64_t pc_base, uint64_t start, uint64_t end, cfi_row_function *row,
                     void *context);

#endif
