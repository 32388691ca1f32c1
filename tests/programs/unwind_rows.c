/*
 * Compares the rows of unwind tables with elfutils' rows for the same addresses, file by file:
 *
 *   unwind_rows FILE...        or paths, one per line, on the standard input
 *
 * Prints a line with the first difference for each file that differs, and a last line with totals;
 * the exit status is 1 if a file differs. Files without call frame information are skipped.
 *
 * Compares each address at which the table or elfutils changes its rule, and the last one before a
 * change of elfutils. The rule of elfutils is derived only from dwarf_frame_cfa and
 * dwarf_frame_register.
 */
#include "agent/unwind/unwind_names.h"
#include "agent/unwind/unwind_table.h"
#include "lib/base/err.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct totals {
    unsigned long file_count;
    unsigned long differing_count;
    unsigned long function_count;
    unsigned long row_count;
    unsigned long stop_rows[UNWIND_STOP_COUNT];
    unsigned long problems[EH_FRAME_PROBLEM_COUNT];
};

struct comparison {
    const char *path;
    const struct unwind_table *table;
    Dwarf_CFI *cfi;
    bool is_arm64;
    unsigned long row_count;
    unsigned long difference_count;
    Dwarf_Frame *frame; /* the last rule and its range */
    uint64_t frame_start;
    uint64_t frame_end;
    bool is_signal;
};

/* elfutils' rule of a register as a cfi_saved. */
static struct cfi_saved saved_in(Dwarf_Frame *frame, int reg)
{
    Dwarf_Op memory[3], *ops;
    size_t count;
    struct cfi_saved other = {.kind = CFI_SAVED_OTHER};
    if (dwarf_frame_register(frame, reg, memory, &ops, &count) != 0)
        return other;
    if (count == 0)
        return (struct cfi_saved){.kind = ops ? CFI_SAVED_UNDEFINED : CFI_SAVED_SAME};
    if (ops[count - 1].atom == DW_OP_stack_value)
        return other;
    if (ops[0].atom == DW_OP_regx)
        return (struct cfi_saved){CFI_SAVED_IN_REGISTER, (uint32_t)ops[0].number, 0};
    if (ops[0].atom != DW_OP_call_frame_cfa)
        return other;
    if (count == 1)
        return (struct cfi_saved){.kind = CFI_SAVED_AT_CFA};
    if (count == 2 && ops[1].atom == DW_OP_plus_uconst)
        return (struct cfi_saved){CFI_SAVED_AT_CFA, 0, (int64_t)ops[1].number};
    if (count == 2 && ops[1].atom >= DW_OP_breg0 && ops[1].atom <= DW_OP_breg31)
        return (struct cfi_saved){CFI_SAVED_AT_REGISTER, ops[1].atom - (uint32_t)DW_OP_breg0,
                                  (int64_t)ops[1].number};
    return other;
}

/* The expression that linkers write for the PLT (UNWIND_CFA_PLT). Its operand 4 is a literal: the
 * offset in a PLT entry from which on the entry has pushed a word. */
static bool is_plt(const Dwarf_Op *ops, size_t count)
{
    static const uint8_t atoms[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
                                    DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus};
    if (count != sizeof atoms || ops[0].number != 8 || ops[1].number != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (i != 4 && ops[i].atom != atoms[i])
            return false;
    }
    return ops[4].atom >= DW_OP_lit0 && ops[4].atom <= DW_OP_lit15;
}

static struct cfi_cfa cfa_in(Dwarf_Frame *frame)
{
    Dwarf_Op *ops;
    size_t count, at = 1;
    struct cfi_cfa other = {.kind = CFI_CFA_OTHER};
    if (dwarf_frame_cfa(frame, &ops, &count) != 0)
        return (struct cfi_cfa){.kind = CFI_CFA_UNSET}; /* inconsistent instructions */
    if (count == 0)
        return other;
    if (is_plt(ops, count))
        return (struct cfi_cfa){.kind = CFI_CFA_PLT, .offset = ops[4].atom - DW_OP_lit0};
    struct cfi_cfa cfa = {.kind = CFI_CFA_REGISTER, .offset = (int64_t)ops[0].number};
    if (ops[0].atom == DW_OP_bregx) {
        cfa.reg = (uint32_t)ops[0].number;
        cfa.offset = (int64_t)ops[0].number2;
    } else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
        cfa.reg = ops[0].atom - (uint32_t)DW_OP_breg0;
    } else {
        return other;
    }
    if (at < count && ops[at].atom == DW_OP_deref) {
        cfa.kind = CFI_CFA_DEREF;
        at++;
    }
    if (at < count && ops[at].atom == DW_OP_plus_uconst) {
        *(cfa.kind == CFI_CFA_DEREF ? &cfa.add : &cfa.offset) += (int64_t)ops[at].number;
        at++;
    }
    return at == count ? cfa : other;
}

/* Converts elfutils' result to a rule; a form that rules cannot express becomes the stop that the
 * table must have. */
static struct cfi_rule expected_rule(const struct comparison *comparison)
{
    bool is_arm64 = comparison->is_arm64;
    uint32_t fp_number = is_arm64 ? 29 : 6, sp_number = is_arm64 ? 31 : 7;
    struct cfi_saved ra = saved_in(comparison->frame, is_arm64 ? 30 : 16);
    struct cfi_saved fp = saved_in(comparison->frame, (int)fp_number);
    struct cfi_cfa cfa = cfa_in(comparison->frame);
    struct cfi_rule rule = {0};
    if (cfa.kind == CFI_CFA_UNSET)
        return cfi_rule_stop(UNWIND_STOP_CORRUPT);
    if (ra.kind == CFI_SAVED_UNDEFINED)
        return cfi_rule_stop(UNWIND_STOP_ROOT);
    if (comparison->is_signal &&
        (is_arm64 || (cfa.kind == CFI_CFA_DEREF && cfa.reg == sp_number))) {
        rule.rule.cfa = UNWIND_CFA_SIGNAL;
        rule.rule.cfa_offset = is_arm64 ? 312 : (int32_t)cfa.offset - 120;
        return rule;
    }
    if (cfa.kind == CFI_CFA_OTHER ||
        (cfa.kind == CFI_CFA_DEREF && cfa.reg != fp_number && cfa.reg != sp_number))
        return cfi_rule_stop(UNWIND_STOP_EXPRESSION);
    rule.rule.cfa_offset = (int32_t)cfa.offset;
    rule.extra.cfa_add = (int32_t)cfa.add;
    if (cfa.kind == CFI_CFA_PLT)
        rule.rule.cfa = UNWIND_CFA_PLT;
    else if (cfa.kind == CFI_CFA_DEREF)
        rule.rule.cfa = cfa.reg == fp_number ? UNWIND_CFA_FP_DEREF : UNWIND_CFA_SP_DEREF;
    else if (cfa.reg == fp_number || cfa.reg == sp_number)
        rule.rule.cfa = cfa.reg == fp_number ? UNWIND_CFA_FP : UNWIND_CFA_SP;
    else {
        rule.rule.cfa = UNWIND_CFA_REGISTER;
        rule.extra.cfa_register = (uint8_t)cfa.reg;
    }
    bool is_far = fp.kind == CFI_SAVED_AT_CFA && fp.offset != (int16_t)fp.offset;
    if (is_far) /* relative to the register that the CFA is based on */
        fp = (struct cfi_saved){CFI_SAVED_AT_REGISTER, cfa.reg, fp.offset + cfa.offset};
    if (fp.kind == CFI_SAVED_AT_CFA)
        rule.rule.saved = UNWIND_FP_AT_CFA;
    else if (fp.kind == CFI_SAVED_AT_REGISTER && fp.reg == sp_number)
        rule.rule.saved = UNWIND_FP_AT_SP;
    else if (fp.kind == CFI_SAVED_AT_REGISTER && fp.reg == fp_number)
        rule.rule.saved = UNWIND_FP_AT_FP;
    else if (fp.kind == CFI_SAVED_IN_REGISTER)
        rule.rule.saved = UNWIND_FP_REGISTER;
    else if (fp.kind != CFI_SAVED_SAME)
        rule.rule.saved = UNWIND_FP_UNKNOWN;
    if (rule.rule.saved != UNWIND_FP_UNKNOWN)
        rule.rule.fp_offset =
            fp.kind == CFI_SAVED_IN_REGISTER ? (int16_t)fp.reg : (int16_t)fp.offset;
    if (ra.kind == CFI_SAVED_AT_CFA) {
        int64_t fp_at_cfa = is_far ? fp.offset - cfa.offset : fp.offset;
        bool has_slot = is_far || rule.rule.saved == UNWIND_FP_AT_CFA;
        bool is_default = is_arm64 ? has_slot && ra.offset == fp_at_cfa + 8 : ra.offset == -8;
        if (!is_default) {
            rule.rule.saved |= UNWIND_RA_AT_CFA << 4;
            rule.extra.ra_offset = (int16_t)ra.offset;
        }
    } else if (is_arm64 &&
               (ra.kind == CFI_SAVED_SAME || (ra.kind == CFI_SAVED_IN_REGISTER && ra.reg == 30))) {
        rule.rule.saved |= UNWIND_RA_LINK << 4;
    } else if (ra.kind == CFI_SAVED_IN_REGISTER) {
        rule.rule.saved |= UNWIND_RA_REGISTER << 4;
        rule.extra.ra_offset = (int16_t)ra.reg;
    } else {
        return cfi_rule_stop(ra.kind == CFI_SAVED_SAME ? UNWIND_STOP_UNSUPPORTED
                                                       : UNWIND_STOP_EXPRESSION);
    }
    return rule;
}

/* elfutils does not know UNWIND_RA_IS_HANDLER, so it is not compared. */
static struct cfi_rule without_handler(const struct cfi_rule *rule)
{
    struct cfi_rule plain = *rule;
    plain.rule.saved &= (uint8_t) ~(UNWIND_RA_IS_HANDLER << 4);
    return plain;
}

static void report(struct comparison *comparison, uint64_t address, const char *expected,
                   const struct cfi_rule *rule)
{
    char text[UNWIND_RULE_TEXT_BYTES];
    if (comparison->difference_count++)
        return;
    unwind_rule_text(rule, comparison->is_arm64, text);
    printf("%s: at %#lx elfutils has %s, the table %s\n", comparison->path, (unsigned long)address,
           expected, text);
}

static bool compare_address(struct comparison *comparison, uint64_t address)
{
    if (comparison->frame && address >= comparison->frame_start && address < comparison->frame_end)
        return true;
    free(comparison->frame);
    comparison->frame = NULL;
    if (dwarf_cfi_addrframe(comparison->cfi, address, &comparison->frame) != 0)
        return false;
    Dwarf_Addr start, end;
    dwarf_frame_info(comparison->frame, &start, &end, &comparison->is_signal);
    comparison->frame_start = start;
    comparison->frame_end = end;
    return true;
}

static void compare_at(struct comparison *comparison, uint64_t address)
{
    const struct cfi_rule *rule = unwind_table_find(comparison->table, address);
    comparison->row_count++;
    if (!compare_address(comparison, address)) {
        if (rule->rule.cfa != UNWIND_CFA_STOP || rule->rule.cfa_offset != UNWIND_STOP_CORRUPT)
            report(comparison, address, dwarf_errmsg(-1), rule);
        return;
    }
    const struct cfi_rule expected = expected_rule(comparison), found = without_handler(rule);
    if (!cfi_rule_equal(&expected, &found)) {
        char text[UNWIND_RULE_TEXT_BYTES];
        unwind_rule_text(&expected, comparison->is_arm64, text);
        report(comparison, address, text, rule);
    }
}

/* Compares the addresses of a function at which elfutils' rule changes, and those before them. */
static void compare_function(void *context, uint64_t start, uint64_t end)
{
    struct comparison *comparison = context;
    for (uint64_t at = start; at < end;) {
        compare_at(comparison, at);
        if (!comparison->frame || comparison->frame_end <= at)
            return;
        at = comparison->frame_end;
        if (at - 1 < end)
            compare_at(comparison, at - 1);
    }
}

static void compare_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    /* elfutils does not read Go's own table. */
    if (rule->rule.cfa != UNWIND_CFA_NONE && rule->rule.cfa != UNWIND_CFA_LEAF)
        compare_at(context, address);
}

static void ignore_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    (void)context;
    (void)address;
    (void)rule;
}

/* Functions of the section as elfutils counts them, including those without bytes. */
static unsigned long count_functions(Elf *elf, const char *wanted)
{
    size_t names, count = 0;
    GElf_Shdr header;
    Elf_Scn *section = NULL;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return 0;
    while ((section = elf_nextscn(elf, section))) {
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || strcmp(name, wanted) != 0)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        Dwarf_CFI_Entry entry;
        Dwarf_Off next = 0;
        bool is_eh = strcmp(wanted, ".eh_frame") == 0;
        for (Dwarf_Off at = 0; data; at = next) {
            int result = dwarf_next_cfi((const unsigned char *)elf_getident(elf, NULL), data, is_eh,
                                        at, &next, &entry);
            if (result != 0)
                break;
            count += !dwarf_cfi_cie_p(&entry);
        }
    }
    return count;
}

static void add_totals(struct totals *totals, const struct comparison *comparison)
{
    const struct unwind_table_facts *facts = &comparison->table->facts;
    totals->file_count++;
    totals->differing_count += comparison->difference_count > 0;
    totals->function_count += facts->frames.function_count;
    totals->row_count += comparison->row_count;
    for (int i = 0; i < UNWIND_STOP_COUNT; i++)
        totals->stop_rows[i] += facts->stop_rows[i];
    for (int i = 0; i < EH_FRAME_PROBLEM_COUNT; i++)
        totals->problems[i] += facts->frames.problems[i];
}

static void compare_tables(int fd, const char *path, const struct unwind_table *table,
                           struct totals *totals)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool is_debug = table->facts.frames.is_debug_frame;
    Dwarf *dwarf = is_debug ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    struct comparison comparison = {
        .path = path,
        .table = table,
        .cfi = is_debug ? dwarf_getcfi(dwarf) : dwarf_getcfi_elf(elf),
        .is_arm64 = table->machine == EM_AARCH64,
    };
    if (comparison.cfi) {
        struct eh_frame_sink sink = {compare_function, ignore_row, &comparison, NULL};
        struct elf_frames frames;
        struct eh_frame_facts facts;
        struct err err;
        if (elf_frames_open(fd, path, &frames, &err) ||
            eh_frame_read(&frames, &sink, &facts, &err)) {
            printf("%s: %s\n", path, err.message);
            comparison.difference_count++;
        }
        unwind_table_each(table, compare_row, &comparison);
    } else {
        printf("%s: elfutils reads no call frame information: %s\n", path, dwarf_errmsg(-1));
        comparison.difference_count++;
    }
    unsigned long expected = count_functions(elf, is_debug ? ".debug_frame" : ".eh_frame");
    unsigned long seen = table->facts.frames.function_count;
    for (int i = EH_FRAME_BAD_RECORD; i < EH_FRAME_PROBLEM_COUNT; i++)
        seen += table->facts.frames.problems[i];
    if (expected > seen)
        printf("%s: note: %lu of %lu functions are in no code or of no bytes\n", path,
               expected - seen, expected);
    if (comparison.difference_count)
        printf("%s: %lu of %lu addresses differ\n", path, comparison.difference_count,
               comparison.row_count);
    add_totals(totals, &comparison);
    free(comparison.frame);
    if (!is_debug)
        dwarf_cfi_end(comparison.cfi);
    dwarf_end(dwarf);
    elf_end(elf);
}

static void compare_file(const char *path, struct totals *totals)
{
    struct unwind_table *table;
    struct err err;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (unwind_table_build(fd, path, NULL, &table, &err) == ERR_NONE) {
        /* elfutils knows nothing of code that only Go's own table describes. */
        if (table->facts.frames.function_count)
            compare_tables(fd, path, table, totals);
        unwind_table_destroy(table);
    } else if (err.code != ERR_NOT_FOUND && err.code != ERR_UNSUPPORTED &&
               err.code != ERR_INVALID) {
        printf("%s\n", err.message);
        totals->differing_count++;
    }
    close(fd);
}

static void compare_listed(struct totals *totals)
{
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = '\0';
        compare_file(path, totals);
    }
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    elf_version(EV_CURRENT);
    for (int i = 1; i < argc; i++)
        compare_file(argv[i], &totals);
    if (argc == 1)
        compare_listed(&totals);
    printf("%lu files, %lu functions, %lu addresses, %lu files differ", totals.file_count,
           totals.function_count, totals.row_count, totals.differing_count);
    for (int i = 0; i < UNWIND_STOP_COUNT; i++)
        if (totals.stop_rows[i])
            printf(", %s %lu", unwind_stop_name((enum unwind_stop)i), totals.stop_rows[i]);
    for (int i = 0; i < EH_FRAME_PROBLEM_COUNT; i++)
        if (totals.problems[i])
            printf(", %s %lu", eh_frame_problem_name((enum eh_frame_problem)i), totals.problems[i]);
    printf("\n");
    return totals.differing_count > 0;
}
