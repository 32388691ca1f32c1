#include "agent/unwind/cfi_state.h"

#include <assert.h>
#include <stddef.h>

/* x86-64: offset of rsp from r8 in struct sigcontext. arm64: offset of the registers in
 * rt_sigframe, after siginfo, the part of ucontext before its mcontext, and the fault address. */
enum { X86_SIGNAL_SP = 15 * 8, ARM64_SIGNAL_REGISTERS = 128 + 176 + 8 };

void cfi_common_init(struct cfi_common *common, bool is_arm64)
{
    *common = (struct cfi_common){
        .is_arm64 = is_arm64,
        .fp = is_arm64 ? 29 : 6,
        .sp = is_arm64 ? 31 : 7,
        .ra = is_arm64 ? 30 : 16,
    };
    if (!is_arm64)
        common->initial.ra = (struct cfi_saved){.kind = CFI_SAVED_AT_CFA, .offset = -8};
}

static enum unwind_stop set_cfa(const struct cfi_common *common, const struct cfi_cfa *cfa,
                                struct cfi_rule *rule)
{
    bool by_fp = cfa->reg == common->fp;
    switch (cfa->kind) {
    case CFI_CFA_REGISTER:
        rule->rule.cfa = by_fp                    ? UNWIND_CFA_FP
                         : cfa->reg == common->sp ? UNWIND_CFA_SP
                                                  : UNWIND_CFA_REGISTER;
        if (rule->rule.cfa == UNWIND_CFA_REGISTER)
            rule->extra.cfa_register = (uint8_t)cfa->reg;
        break;
    case CFI_CFA_DEREF:
        if (!by_fp && cfa->reg != common->sp)
            return UNWIND_STOP_EXPRESSION;
        rule->rule.cfa = by_fp ? UNWIND_CFA_FP_DEREF : UNWIND_CFA_SP_DEREF;
        rule->extra.cfa_add = (int32_t)cfa->add;
        break;
    case CFI_CFA_PLT:
        if (common->is_arm64)
            return UNWIND_STOP_EXPRESSION;
        rule->rule.cfa = UNWIND_CFA_PLT;
        break;
    case CFI_CFA_OTHER:
        return UNWIND_STOP_EXPRESSION;
    case CFI_CFA_UNSET:
    default:
        return UNWIND_STOP_CORRUPT;
    }
    rule->rule.cfa_offset = (int32_t)cfa->offset;
    bool fits = cfi_fits_s32(cfa->offset) && cfi_fits_s32(cfa->add) && cfa->reg < 32;
    return fits ? UNWIND_CONTINUE : UNWIND_STOP_UNSUPPORTED;
}

/* In a large frame the offset of the frame pointer from the CFA does not fit a rule. It is then
 * described relative to the register on which the CFA is based. */
static uint8_t far_fp_kind(const struct cfi_common *common, const struct cfi_state *state,
                           struct cfi_rule *rule)
{
    const struct cfi_cfa *cfa = &state->cfa;
    int64_t offset;
    if (cfa->kind != CFI_CFA_REGISTER || (cfa->reg != common->sp && cfa->reg != common->fp) ||
        __builtin_add_overflow(cfa->offset, state->fp.offset, &offset) || !cfi_fits_s16(offset))
        return UNWIND_FP_UNKNOWN;
    rule->rule.fp_offset = (int16_t)offset;
    return cfa->reg == common->sp ? UNWIND_FP_AT_SP : UNWIND_FP_AT_FP;
}

/* A frame pointer that no rule can describe is unknown, which matters only if a later frame needs
 * it. */
static uint8_t fp_kind(const struct cfi_common *common, const struct cfi_state *state,
                       struct cfi_rule *rule)
{
    const struct cfi_saved *fp = &state->fp;
    rule->rule.fp_offset = 0;
    switch (fp->kind) {
    case CFI_SAVED_SAME:
        return UNWIND_FP_SAME;
    case CFI_SAVED_AT_CFA:
        if (!cfi_fits_s16(fp->offset))
            return far_fp_kind(common, state, rule);
        rule->rule.fp_offset = (int16_t)fp->offset;
        return UNWIND_FP_AT_CFA;
    case CFI_SAVED_AT_REGISTER:
        if (!cfi_fits_s16(fp->offset) || (fp->reg != common->sp && fp->reg != common->fp))
            return UNWIND_FP_UNKNOWN;
        rule->rule.fp_offset = (int16_t)fp->offset;
        return fp->reg == common->sp ? UNWIND_FP_AT_SP : UNWIND_FP_AT_FP;
    case CFI_SAVED_IN_REGISTER:
        if (fp->reg >= 32)
            return UNWIND_FP_UNKNOWN;
        rule->rule.fp_offset = (int16_t)fp->reg;
        return UNWIND_FP_REGISTER;
    case CFI_SAVED_UNDEFINED:
    case CFI_SAVED_OTHER:
    default:
        return UNWIND_FP_UNKNOWN;
    }
}

/* Whether the return address is where the calling convention places it. */
static bool is_default_location(const struct cfi_common *common, const struct cfi_state *state,
                                const struct cfi_rule *rule)
{
    if (!common->is_arm64)
        return state->ra.offset == -8;
    return state->fp.kind == CFI_SAVED_AT_CFA && rule->rule.saved != UNWIND_FP_UNKNOWN &&
           state->ra.offset - 8 == state->fp.offset;
}

static enum unwind_stop set_return_address(const struct cfi_common *common,
                                           const struct cfi_state *state, struct cfi_rule *rule)
{
    const struct cfi_saved *ra = &state->ra;
    uint8_t kind = UNWIND_RA_AT_CFA;
    switch (ra->kind) {
    case CFI_SAVED_SAME:
        if (!common->is_arm64)
            return UNWIND_STOP_UNSUPPORTED;
        kind = UNWIND_RA_LINK;
        break;
    case CFI_SAVED_AT_CFA:
        if (is_default_location(common, state, rule))
            kind = UNWIND_RA_DEFAULT;
        else if (!cfi_fits_s16(ra->offset))
            return UNWIND_STOP_UNSUPPORTED;
        else
            rule->extra.ra_offset = (int16_t)ra->offset;
        break;
    case CFI_SAVED_IN_REGISTER:
        if (ra->reg >= 32)
            return UNWIND_STOP_UNSUPPORTED;
        kind = common->is_arm64 && ra->reg == common->ra ? UNWIND_RA_LINK : UNWIND_RA_REGISTER;
        if (kind == UNWIND_RA_REGISTER)
            rule->extra.ra_offset = (int16_t)ra->reg;
        break;
    case CFI_SAVED_UNDEFINED:
        return UNWIND_STOP_ROOT;
    case CFI_SAVED_AT_REGISTER:
    case CFI_SAVED_OTHER:
    default:
        return UNWIND_STOP_EXPRESSION;
    }
    rule->rule.saved = (uint8_t)(rule->rule.saved | kind << 4);
    return UNWIND_CONTINUE;
}

/* Sets the rule of a signal frame; false: this is none. */
static bool set_signal_rule(const struct cfi_common *common, const struct cfi_state *state,
                            struct cfi_rule *rule)
{
    if (!common->is_signal)
        return false;
    if (common->is_arm64) {
        rule->rule = (struct unwind_rule){ARM64_SIGNAL_REGISTERS, 0, UNWIND_CFA_SIGNAL, 0};
        return true;
    }
    const struct cfi_cfa *cfa = &state->cfa;
    if (cfa->kind != CFI_CFA_DEREF || cfa->reg != common->sp || cfa->add ||
        !cfi_fits_s32(cfa->offset - X86_SIGNAL_SP))
        return false;
    int32_t offset = (int32_t)(cfa->offset - X86_SIGNAL_SP);
    rule->rule = (struct unwind_rule){offset, 0, UNWIND_CFA_SIGNAL, 0};
    return true;
}

static_assert(offsetof(struct unwind_rule, fp_offset) == 4 &&
                  offsetof(struct unwind_rule, cfa) == 6 &&
                  offsetof(struct unwind_rule, saved) == 7,
              "cfi_state_pack_rule() packs them, little-endian");

struct cfi_rule cfi_state_unusual_rule(const struct cfi_common *common,
                                       const struct cfi_state *state)
{
    struct cfi_rule rule = {0};
    if (state->ra.kind == CFI_SAVED_UNDEFINED)
        return cfi_rule_stop(UNWIND_STOP_ROOT);
    if (set_signal_rule(common, state, &rule))
        return rule;
    enum unwind_stop stop = set_cfa(common, &state->cfa, &rule);
    if (stop)
        return cfi_rule_stop(stop);
    rule.rule.saved = fp_kind(common, state, &rule);
    stop = set_return_address(common, state, &rule);
    return stop ? cfi_rule_stop(stop) : rule;
}
