/*
 * cfi_program: runs call frame instructions (DWARF 5, section 6.4.2) and emits a rule of
 * bpf/unwind_format.h for each address at which the rule changes.
 *
 * Only the CFA, the frame pointer and the return address are followed; instructions for other
 * registers are skipped. Expressions are recognised in the few forms that compilers, linkers and
 * hand-written code use: PLT entries, a stack pointer that was saved on the stack, and the kernel's
 * signal frame. A state that no rule can describe becomes a rule that stops with a reason.
 */
#ifndef AGENT_UNWIND_CFI_PROGRAM_H
#define AGENT_UNWIND_CFI_PROGRAM_H

#include "agent/unwind/cfi_cursor.h"
#include "bpf/unwind_format.h"

#include <stdbool.h>
#include <stdint.h>

/* Both records of a rule; extra is zero if the rule needs none. Rules are made and compared as two
 * words: small stores followed by large loads make a table take a third longer. */
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

/* Whether the rule uses its extra record. */
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
    int64_t offset; /* PLT: the byte of an entry from which on 8 more bytes are pushed */
    int64_t add;    /* DEREF: added to the value that was read */
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

/* The data that all functions of one CIE share. */
struct cfi_common {
    bool is_arm64;
    bool is_signal; /* the frame was made by the kernel for a signal handler */
    uint8_t pointer_encoding;
    uint32_t fp; /* DWARF numbers */
    uint32_t sp;
    uint32_t ra;
    uint64_t code_alignment;
    int64_t data_alignment;
    struct cfi_state initial; /* the state after the instructions of the CIE */
};

/* Sets the register numbers of the architecture and the state that its ABI defines at the start. */
void cfi_common_init(struct cfi_common *common, bool is_arm64);

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
