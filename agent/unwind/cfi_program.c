/*
 * A call frame program describes, for the addresses of one function in ascending order, where the
 * canonical frame address (CFA) and the saved registers are. The state is the current row of that
 * table; instructions change it, and advance_loc moves to another address. Example (x86-64):
 *
 *   instruction                     state                       row
 *   CIE: def_cfa rsp, 8             CFA = rsp + 8, ra at CFA - 8
 *   (start of the function)                                     0x1000: cfa=rsp+8
 *   advance_loc 1  (push rbp)
 *   def_cfa_offset 16               CFA = rsp + 16
 *   offset rbp, 2 (* -8)            rbp at CFA - 16             0x1001: cfa=rsp+16 rbp=[cfa-16]
 *   advance_loc 3  (mov rbp, rsp)
 *   def_cfa_register rbp            CFA = rbp + 16              0x1004: cfa=rbp+16 rbp=[cfa-16]
 *
 * A row is emitted when the address changes, because several instructions may apply to one address.
 * remember_state and restore_state bracket an epilogue in the middle of a function.
 *
 * Building the tables of a large library is mostly this file: the two most frequent instructions
 * and the most frequent form of a rule have paths of their own.
 */
#include "agent/unwind/cfi_program.h"

#include <assert.h>

enum { REMEMBERED_MAX = 32 };

/* Opcodes of DWARF 5, table 7.29, and of GNU. */
enum {
    /* ADVANCE_LOC, OFFSET, RESTORE: the operand is in the low 6 bits. */
    CFA_ADVANCE_LOC = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_NEGATE_RA_STATE = 0x2d, /* arm64: the return address is signed from here on, or not any
                                   more; the unwinder masks it anyway */
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

enum {
    OP_DEREF = 0x06,
    OP_PLUS_UCONST = 0x23,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
};

enum { X86_RCX = 2 };

struct program {
    const struct cfi_common *common;
    struct cfi_cursor at;
    const uint8_t *begin;
    uint64_t pc_base;
    uint64_t address;
    uint64_t end;
    cfi_row_function *row; /* NULL in a CIE */
    void *context;
    bool is_dirty;   /* the rule may have changed since the last row */
    bool is_leaving; /* the frame is being left for an exception handler */
    uint32_t remembered_count;
    struct cfi_state state;
    struct cfi_state remembered[REMEMBERED_MAX];
};

/* Reads "breg N, offset" at the start of an expression. */
static bool read_base(struct cfi_cursor *expression, uint32_t *ret_register, int64_t *ret_offset)
{
    uint8_t op = cfi_cursor_u8(expression);
    if (op < OP_BREG0 || op > OP_BREG31)
        return false;
    *ret_register = (uint32_t)op - OP_BREG0;
    *ret_offset = cfi_cursor_sleb(expression);
    return !expression->has_failed;
}

/* Whether the expression is that of linkers for PLT entries of 16 bytes:
 * rsp + 8 + ((rip & 15) >= N) * 8. */
static bool is_plt(struct cfi_cursor expression, int64_t *ret_from)
{
    /* breg7 8, breg16 0, lit15, and, litN, ge, lit3, shl, plus */
    static const uint8_t form[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
    if (cfi_cursor_left(&expression) != sizeof form)
        return false;
    for (size_t i = 0; i < sizeof form; i++) {
        if (i != 6 && expression.at[i] != form[i])
            return false;
    }
    *ret_from = expression.at[6] - 0x30;
    return *ret_from >= 0 && *ret_from < 16;
}

static struct cfi_cfa cfa_of_expression(struct cfi_cursor expression)
{
    struct cfi_cfa cfa = {.kind = CFI_CFA_PLT};
    if (is_plt(expression, &cfa.offset))
        return cfa;
    if (!read_base(&expression, &cfa.reg, &cfa.offset))
        return (struct cfi_cfa){.kind = CFI_CFA_OTHER};
    cfa.kind = CFI_CFA_REGISTER;
    if (cfi_cursor_left(&expression) && *expression.at == OP_DEREF) {
        expression.at++;
        cfa.kind = CFI_CFA_DEREF;
    }
    if (cfi_cursor_left(&expression) && *expression.at == OP_PLUS_UCONST) {
        expression.at++;
        int64_t *offset = cfa.kind == CFI_CFA_DEREF ? &cfa.add : &cfa.offset;
        uint64_t add = cfi_cursor_uleb(&expression);
        if (add > INT32_MAX || __builtin_add_overflow(*offset, (int64_t)add, offset))
            return (struct cfi_cfa){.kind = CFI_CFA_OTHER};
    }
    if (cfi_cursor_left(&expression) || expression.has_failed)
        cfa.kind = CFI_CFA_OTHER;
    return cfa;
}

static struct cfi_saved saved_by_expression(struct cfi_cursor expression)
{
    struct cfi_saved saved = {.kind = CFI_SAVED_AT_REGISTER};
    if (!read_base(&expression, &saved.reg, &saved.offset) || cfi_cursor_left(&expression))
        saved.kind = CFI_SAVED_OTHER;
    return saved;
}

/*
 * Whether the function is leaving for an exception handler. GCC's __builtin_eh_return has the stack
 * pointer of the handler in rcx, and the rest of the function only jumps there: its rows are based
 * on rcx and then on rsp. Code that realigns the stack uses other registers (r10, r13).
 */
static bool is_leaving(const struct program *program)
{
    const struct cfi_cfa *cfa = &program->state.cfa;
    if (program->common->is_arm64 || cfa->kind != CFI_CFA_REGISTER)
        return false;
    return cfa->reg == X86_RCX ||
           (program->is_leaving && cfa->reg == program->common->sp && cfa->offset <= 8);
}

static void emit_row(struct program *program)
{
    struct cfi_rule rule = cfi_state_rule(program->common, &program->state);
    program->is_leaving = is_leaving(program);
    if (program->is_leaving && rule.rule.cfa != UNWIND_CFA_STOP)
        rule.rule.saved |= UNWIND_RA_IS_HANDLER << 4;
    program->row(program->context, program->address, &rule);
    program->is_dirty = false;
}

/* Moves to another address; the row of the previous one is complete. False: the address is lower,
 * or the program is that of a CIE. */
static bool move_to(struct program *program, uint64_t address)
{
    if (!program->row || address < program->address)
        return false;
    if (address == program->address)
        return true;
    if (program->is_dirty)
        emit_row(program);
    program->address = address;
    return true;
}

static bool advance_address(struct program *program, uint64_t delta)
{
    uint64_t address;
    if (__builtin_mul_overflow(delta, program->common->code_alignment, &delta) ||
        __builtin_add_overflow(program->address, delta, &address))
        return false;
    return move_to(program, address);
}

/* The state of a register that is followed; NULL: it is not followed. */
static struct cfi_saved *find_slot(struct program *program, uint64_t reg)
{
    if (reg != program->common->fp && reg != program->common->ra)
        return NULL;
    program->is_dirty = true;
    return reg == program->common->fp ? &program->state.fp : &program->state.ra;
}

static void set_saved(struct program *program, uint64_t reg, struct cfi_saved saved)
{
    struct cfi_saved *into = find_slot(program, reg);
    if (into)
        *into = saved;
}

static bool save_at_cfa(struct program *program, uint64_t reg, int64_t factored)
{
    struct cfi_saved saved = {.kind = CFI_SAVED_AT_CFA};
    if (__builtin_mul_overflow(factored, program->common->data_alignment, &saved.offset))
        return false;
    set_saved(program, reg, saved);
    return true;
}

static void restore_register(struct program *program, uint64_t reg)
{
    const struct cfi_state *initial = &program->common->initial;
    set_saved(program, reg, reg == program->common->fp ? initial->fp : initial->ra);
}

static bool remember_state(struct program *program)
{
    if (program->remembered_count == REMEMBERED_MAX)
        return false;
    program->remembered[program->remembered_count++] = program->state;
    return true;
}

static bool restore_state(struct program *program)
{
    if (!program->remembered_count)
        return false;
    program->state = program->remembered[--program->remembered_count];
    program->is_dirty = true;
    return true;
}

static bool define_cfa(struct program *program, uint64_t reg, int64_t offset)
{
    /* A number of more than 32 bits becomes one that no rule can contain. */
    uint32_t number = reg < UINT32_MAX ? (uint32_t)reg : UINT32_MAX;
    program->state.cfa = (struct cfi_cfa){CFI_CFA_REGISTER, number, offset, 0};
    program->is_dirty = true;
    return true;
}

static bool define_factored_cfa(struct program *program, uint64_t reg, int64_t factored)
{
    int64_t offset;
    return !__builtin_mul_overflow(factored, program->common->data_alignment, &offset) &&
           define_cfa(program, reg, offset);
}

static bool has_register_cfa(const struct program *program)
{
    return program->state.cfa.kind == CFI_CFA_REGISTER;
}

static struct cfi_cursor take_expression(struct program *program)
{
    struct cfi_cursor expression = {0};
    uint64_t size = cfi_cursor_uleb(&program->at);
    const uint8_t *bytes = cfi_cursor_skip(&program->at, size);
    if (bytes)
        expression = (struct cfi_cursor){.at = bytes, .end = bytes + size};
    return expression;
}

static bool set_location(struct program *program)
{
    uint64_t here = program->pc_base + (uint64_t)(program->at.at - program->begin);
    uint64_t address;
    uint8_t encoding = program->common->pointer_encoding;
    if (!cfi_cursor_pointer(&program->at, encoding, &address))
        return false;
    if ((encoding & 0x70) == CFI_ENCODING_PC_RELATIVE)
        address += here;
    else if (encoding & 0x70)
        return false;
    return !program->at.has_failed && move_to(program, address);
}

static bool run_cfa(struct program *program, uint8_t op)
{
    struct cfi_cursor *at = &program->at;
    struct cfi_cfa *cfa = &program->state.cfa;
    uint64_t reg;
    switch (op) {
    case CFA_DEF_CFA:
        reg = cfi_cursor_uleb(at);
        return define_cfa(program, reg, (int64_t)cfi_cursor_uleb(at));
    case CFA_DEF_CFA_SF:
        reg = cfi_cursor_uleb(at);
        return define_factored_cfa(program, reg, cfi_cursor_sleb(at));
    case CFA_DEF_CFA_REGISTER:
        reg = cfi_cursor_uleb(at);
        return has_register_cfa(program) && define_cfa(program, reg, cfa->offset);
    case CFA_DEF_CFA_OFFSET:
        return has_register_cfa(program) &&
               define_cfa(program, cfa->reg, (int64_t)cfi_cursor_uleb(at));
    case CFA_DEF_CFA_OFFSET_SF:
        return has_register_cfa(program) &&
               define_factored_cfa(program, cfa->reg, cfi_cursor_sleb(at));
    case CFA_DEF_CFA_EXPRESSION:
    default:
        *cfa = cfa_of_expression(take_expression(program));
        program->is_dirty = true;
        return true;
    }
}

static bool run_saved(struct program *program, uint8_t op)
{
    struct cfi_cursor *at = &program->at;
    uint64_t reg = cfi_cursor_uleb(at);
    uint64_t other;
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        return save_at_cfa(program, reg, (int64_t)cfi_cursor_uleb(at));
    case CFA_OFFSET_EXTENDED_SF:
        return save_at_cfa(program, reg, cfi_cursor_sleb(at));
    case CFA_GNU_NEGATIVE_OFFSET:
        return save_at_cfa(program, reg, (int64_t)-cfi_cursor_uleb(at));
    case CFA_RESTORE_EXTENDED:
        restore_register(program, reg);
        return true;
    case CFA_UNDEFINED:
        set_saved(program, reg, (struct cfi_saved){.kind = CFI_SAVED_UNDEFINED});
        return true;
    case CFA_SAME_VALUE:
        set_saved(program, reg, (struct cfi_saved){.kind = CFI_SAVED_SAME});
        return true;
    case CFA_REGISTER:
        other = cfi_cursor_uleb(at);
        set_saved(program, reg,
                  (struct cfi_saved){CFI_SAVED_IN_REGISTER, other < 32 ? (uint32_t)other : 32, 0});
        return true;
    case CFA_EXPRESSION:
        set_saved(program, reg, saved_by_expression(take_expression(program)));
        return true;
    case CFA_VAL_EXPRESSION:
        take_expression(program);
        set_saved(program, reg, (struct cfi_saved){.kind = CFI_SAVED_OTHER});
        return true;
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
    default:
        cfi_cursor_sleb(at);
        set_saved(program, reg, (struct cfi_saved){.kind = CFI_SAVED_OTHER});
        return true;
    }
}

static bool run_extended(struct program *program, uint8_t op)
{
    struct cfi_cursor *at = &program->at;
    switch (op) {
    case CFA_NOP:
    case CFA_NEGATE_RA_STATE:
        return true;
    case CFA_SET_LOC:
        return set_location(program);
    case CFA_ADVANCE_LOC1:
        return advance_address(program, cfi_cursor_u8(at));
    case CFA_ADVANCE_LOC2:
        return advance_address(program, cfi_cursor_u16(at));
    case CFA_ADVANCE_LOC4:
        return advance_address(program, cfi_cursor_u32(at));
    case CFA_REMEMBER_STATE:
        return remember_state(program);
    case CFA_RESTORE_STATE:
        return restore_state(program);
    case CFA_GNU_ARGS_SIZE:
        cfi_cursor_uleb(at);
        return true;
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
    case CFA_DEF_CFA_EXPRESSION:
        return run_cfa(program, op);
    case CFA_OFFSET_EXTENDED:
    case CFA_OFFSET_EXTENDED_SF:
    case CFA_GNU_NEGATIVE_OFFSET:
    case CFA_RESTORE_EXTENDED:
    case CFA_UNDEFINED:
    case CFA_SAME_VALUE:
    case CFA_REGISTER:
    case CFA_EXPRESSION:
    case CFA_VAL_EXPRESSION:
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        return run_saved(program, op);
    default:
        return false;
    }
}

/* Skips the operand of an instruction for a register that is not followed. */
static void skip_uleb(struct cfi_cursor *cursor)
{
    while (cursor->at < cursor->end) {
        if (*cursor->at++ < 0x80)
            return;
    }
    cursor->has_failed = true;
}

static bool run_program(struct program *program)
{
    const struct cfi_common *common = program->common;
    while (program->at.at < program->at.end && program->address < program->end) {
        uint8_t op = *program->at.at++;
        uint8_t operand = op & 0x3f;
        /* Most instructions are this one and CFA_ADVANCE_LOC. */
        if (op == CFA_DEF_CFA_OFFSET && program->state.cfa.kind == CFI_CFA_REGISTER) {
            program->state.cfa.offset = (int64_t)cfi_cursor_uleb(&program->at);
            program->is_dirty = true;
            if (program->at.has_failed)
                return false;
            continue;
        }
        bool is_sound;
        switch (op & 0xc0) {
        case CFA_ADVANCE_LOC:
            is_sound = advance_address(program, operand);
            break;
        case CFA_OFFSET:
            if (operand != common->fp && operand != common->ra) {
                skip_uleb(&program->at);
                continue;
            }
            is_sound = save_at_cfa(program, operand, (int64_t)cfi_cursor_uleb(&program->at));
            break;
        case CFA_RESTORE:
            restore_register(program, operand);
            is_sound = true;
            break;
        default:
            is_sound = run_extended(program, op);
            break;
        }
        if (!is_sound || program->at.has_failed)
            return false;
    }
    return true;
}

bool cfi_program_prepare(struct cfi_common *common, struct cfi_cursor instructions)
{
    struct program program = {
        .common = common,
        .at = instructions,
        .begin = instructions.at,
        .end = 1,
        .state = common->initial,
    };
    if (!run_program(&program))
        return false;
    common->initial = program.state;
    return true;
}

bool cfi_program_run(const struct cfi_common *common, struct cfi_cursor instructions,
                     uint64_t pc_base, uint64_t start, uint64_t end, cfi_row_function *row,
                     void *context)
{
    struct program program;
    program.common = common;
    program.at = instructions;
    program.begin = instructions.at;
    program.pc_base = pc_base;
    program.address = start;
    program.end = end;
    program.row = row;
    program.context = context;
    program.is_dirty = true;
    program.is_leaving = false;
    program.remembered_count = 0; /* `remembered` is not cleared: it has 3 KB */
    program.state = common->initial;
    bool is_sound = run_program(&program);
    if (program.address >= end)
        return is_sound;
    if (!is_sound) {
        struct cfi_rule corrupt = cfi_rule_stop(UNWIND_STOP_CORRUPT);
        row(context, program.address, &corrupt);
    } else if (program.is_dirty) {
        emit_row(&program);
    }
    return is_sound;
}
