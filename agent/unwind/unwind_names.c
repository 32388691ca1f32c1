#include "agent/unwind/unwind_names.h"

#include <stdio.h>

const char *unwind_stop_name(enum unwind_stop stop)
{
    static const char *const names[UNWIND_STOP_COUNT] = {
        [UNWIND_CONTINUE] = "unfinished",          [UNWIND_STOP_ROOT] = "root",
        [UNWIND_STOP_ROOT_ZERO] = "root-zero",     [UNWIND_STOP_FRAME_LIMIT] = "frame-limit",
        [UNWIND_STOP_UNMAPPED] = "unmapped",       [UNWIND_STOP_FRAME_POINTER] = "frame-pointer",
        [UNWIND_STOP_STACK_READ] = "stack-read",   [UNWIND_STOP_NO_PROGRESS] = "no-progress",
        [UNWIND_STOP_REGISTER] = "register",       [UNWIND_STOP_EXPRESSION] = "expression",
        [UNWIND_STOP_UNSUPPORTED] = "unsupported", [UNWIND_STOP_CORRUPT] = "corrupt",
        [UNWIND_STOP_RULES_FULL] = "rules-full",   [UNWIND_STOP_TABLE] = "table",
        [UNWIND_STOP_COMPAT] = "compat",
    };
    return (unsigned)stop < UNWIND_STOP_COUNT ? names[stop] : "unknown";
}

static const char *register_name(uint32_t number, bool is_arm64)
{
    static const char *const x86[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    static const char *const arm64[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",
                                        "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
                                        "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
                                        "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};
    if (is_arm64)
        return number < 32 ? arm64[number] : "?";
    return number < 16 ? x86[number] : "?";
}

static int cfa_text(const struct cfi_rule *rule, bool is_arm64, char *text, size_t size)
{
    const char *sp = is_arm64 ? "sp" : "rsp";
    const char *fp = is_arm64 ? "x29" : "rbp";
    int offset = rule->rule.cfa_offset;
    switch (rule->rule.cfa) {
    case UNWIND_CFA_SP:
        return snprintf(text, size, "cfa=%s%+d", sp, offset);
    case UNWIND_CFA_FP:
        return snprintf(text, size, "cfa=%s%+d", fp, offset);
    case UNWIND_CFA_PLT:
        return snprintf(text, size, "cfa=%s+8(+8 from byte %d)", sp, offset);
    case UNWIND_CFA_SP_DEREF:
        return snprintf(text, size, "cfa=[%s%+d]%+d", sp, offset, rule->extra.cfa_add);
    case UNWIND_CFA_FP_DEREF:
        return snprintf(text, size, "cfa=[%s%+d]%+d", fp, offset, rule->extra.cfa_add);
    default:
        return snprintf(text, size, "cfa=%s%+d", register_name(rule->extra.cfa_register, is_arm64),
                        offset);
    }
}

static int fp_text(const struct cfi_rule *rule, bool is_arm64, char *text, size_t size)
{
    const char *fp = is_arm64 ? "x29" : "rbp";
    int offset = rule->rule.fp_offset;
    switch (rule->rule.saved & 15) {
    case UNWIND_FP_SAME:
        return 0;
    case UNWIND_FP_AT_CFA:
        return snprintf(text, size, " %s=[cfa%+d]", fp, offset);
    case UNWIND_FP_AT_SP:
        return snprintf(text, size, " %s=[%s%+d]", fp, is_arm64 ? "sp" : "rsp", offset);
    case UNWIND_FP_AT_FP:
        return snprintf(text, size, " %s=[%s%+d]", fp, fp, offset);
    case UNWIND_FP_REGISTER:
        return snprintf(text, size, " %s=%s", fp, register_name((uint32_t)offset, is_arm64));
    default:
        return snprintf(text, size, " %s=unknown", fp);
    }
}

static void ra_text(const struct cfi_rule *rule, bool is_arm64, char *text, size_t size)
{
    int offset = rule->extra.ra_offset;
    const char *handler = rule->rule.saved >> 7 ? " to a handler" : "";
    switch (UNWIND_RA_KIND(rule->rule.saved)) {
    case UNWIND_RA_DEFAULT:
        snprintf(text, size, is_arm64 ? " ra=after x29%s" : " ra=[cfa-8]%s", handler);
        break;
    case UNWIND_RA_LINK:
        snprintf(text, size, " ra=x30");
        break;
    case UNWIND_RA_AT_CFA:
        snprintf(text, size, " ra=[cfa%+d]%s", offset, handler);
        break;
    default:
        snprintf(text, size, " ra=%s%s", register_name((uint32_t)offset, is_arm64), handler);
        break;
    }
}

void unwind_rule_text(const struct cfi_rule *rule, bool is_arm64, char text[UNWIND_RULE_TEXT_BYTES])
{
    size_t size = UNWIND_RULE_TEXT_BYTES;
    switch (rule->rule.cfa) {
    case UNWIND_CFA_NONE:
        snprintf(text, size, "none");
        return;
    case UNWIND_CFA_STOP:
        snprintf(text, size, "stop=%s", unwind_stop_name((enum unwind_stop)rule->rule.cfa_offset));
        return;
    case UNWIND_CFA_LEAF:
        snprintf(text, size, "no frame, ra=%s", is_arm64 ? "x30" : "[rsp]");
        return;
    case UNWIND_CFA_SIGNAL:
        snprintf(text, size, "signal registers=[%s%+d]", is_arm64 ? "sp" : "rsp",
                 rule->rule.cfa_offset);
        return;
    default:
        break;
    }
    int used = cfa_text(rule, is_arm64, text, size);
    used += fp_text(rule, is_arm64, text + used, size - (size_t)used);
    ra_text(rule, is_arm64, text + used, size - (size_t)used);
}
