/*
 * cfi_state: where the CFA, the frame pointer and the return address are at one address of a
 * function (DWARF 5, section 6.4), and the rule of bpf/unwind_format.h that describes it.
 *
 * A state that no rule can describe becomes a rule that stops with a reason. Threads: any.
 */
#ifndef AGENT_UNWIND_CFI_STATE_H
#define AGENT_UNWIND_CFI_STATE_H

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

static inline bool cfi_fits_s16(int64_t number)
{
    return number == (int16_t)number;
}

static inline bool cfi_fits_s32(int64_t number)
{
    return number == (int32_t)number;
}

/* Makes the rule of nearly all rows in one word: the CFA is based on the stack or frame pointer,
 * the frame pointer is unchanged or in the frame, and the return address is at its default
 * location. False: the state has another form. */
static inline bool cfi_state_pack_rule(const struct cfi_common *common,
                                       const struct cfi_state *state, struct cfi_rule *rule)
{
    const struct cfi_cfa *cfa = &state->cfa;
    const struct cfi_saved *fp = &state->fp;
    bool is_fp_in_frame = fp->kind == CFI_SAVED_AT_CFA;
    if (common->is_arm64 || common->is_signal || cfa->kind != CFI_CFA_REGISTER ||
        (cfa->reg != common->sp && cfa->reg != common->fp) || !cfi_fits_s32(cfa->offset) ||
        state->ra.kind != CFI_SAVED_AT_CFA || state->ra.offset != -8 ||
        (fp->kind != CFI_SAVED_SAME && !is_fp_in_frame) || !cfi_fits_s16(fp->offset))
        return false;
    uint64_t cfa_kind = cfa->reg == common->sp ? UNWIND_CFA_SP : UNWIND_CFA_FP;
    uint64_t fp_offset = is_fp_in_frame ? (uint16_t)fp->offset : 0;
    uint64_t saved = is_fp_in_frame ? UNWIND_FP_AT_CFA : UNWIND_FP_SAME;
    rule->words[0] = (uint32_t)cfa->offset | fp_offset << 32 | cfa_kind << 48 | saved << 56;
    rule->words[1] = 0;
    return true;
}

/* As cfi_state_rule, for states that cfi_state_pack_rule does not take. */
struct cfi_rule cfi_state_unusual_rule(const struct cfi_common *common,
                                       const struct cfi_state *state);

/* The rule of a state, for the functions of a CIE. Inline, because building the table of a large
 * library is mostly this function and cfi_program. */
static inline struct cfi_rule cfi_state_rule(const struct cfi_common *common,
                                             const struct cfi_state *state)
{
    struct cfi_rule rule;
    return cfi_state_pack_rule(common, state, &rule) ? rule : cfi_state_unusual_rule(common, state);
}

#endif
