/*
 * fuzz_eh_frame: call frame information from a hostile file, alone or within an ELF file. First
 * byte: bit 0 an ELF file follows, bit 1 arm64, bit 2 .debug_frame, bit 3 Go's table. For a bare
 * section, the second byte is the size of the index in units of 8 bytes.
 */
#include "agent/unwind/go_frames.h"
#include "agent/unwind/unwind_table.h"
#include "lib/base/err.h"
#include "tests/fuzz/fuzz.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CODE_START = 0x1000, CODE_BYTES = 0x100000, FRAMES_AT = 0x200000 };

struct order {
    uint64_t start;
    uint64_t end;
    uint64_t last;
};

static void take_function(void *context, uint64_t start, uint64_t end)
{
    struct order *order = context;
    fuzz_check(start < end && start >= order->end);
    fuzz_check(start >= CODE_START && end <= CODE_START + CODE_BYTES);
    *order = (struct order){start, end, start};
}

static void take_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    struct order *order = context;
    fuzz_check(address >= order->last && address < order->end);
    fuzz_check(rule->rule.cfa <= UNWIND_CFA_SIGNAL && rule->rule.cfa != UNWIND_CFA_NONE);
    order->last = address;
}

static void take_table_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    fuzz_check(unwind_table_find(context, address) == rule);
}

static void read_elf(int fd)
{
    struct unwind_table *table;
    struct err err;
    enum err_code code = unwind_table_build(fd, "input", NULL, &table, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err) || code == ERR_NOT_FOUND);
        return;
    }
    unwind_table_each(table, take_table_row, table);
    unwind_table_destroy(table);
}

static void read_section(int fd, uint8_t kind, uint64_t index_bytes, uint64_t bytes)
{
    struct order order = {0};
    struct eh_frame_sink sink = {take_function, take_row, &order, NULL};
    struct eh_frame_facts facts;
    struct err err;
    struct elf_extent section = {FRAMES_AT + index_bytes, index_bytes, bytes - index_bytes};
    struct elf_frames frames = {
        .fd = fd,
        .path = "input",
        .machine = kind & 2 ? EM_AARCH64 : EM_X86_64,
        .file_bytes = bytes,
        .eh_frame_hdr = {FRAMES_AT, 0, index_bytes},
        .code_count = 1,
        .code = {{CODE_START, 0, CODE_BYTES}},
    };
    *(kind & 4 ? &frames.debug_frame : &frames.eh_frame) = section;
    enum err_code code = eh_frame_read(&frames, &sink, &facts, &err);
    fuzz_check(code == ERR_NONE || code == ERR_NOT_FOUND);
}

static void take_go_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    struct order *order = context;
    fuzz_check(address >= order->last && address < order->end);
    fuzz_check(rule->rule.cfa == UNWIND_CFA_LEAF || rule->rule.cfa == UNWIND_CFA_NONE);
    order->last = address;
}

static void read_go_table(int fd, uint64_t bytes)
{
    struct order order = {0};
    struct eh_frame_sink sink = {take_function, take_go_row, &order, NULL};
    const struct elf_frames frames = {
        .fd = fd,
        .path = "input",
        .machine = EM_X86_64,
        .file_bytes = bytes,
        .go_table = {FRAMES_AT, 0, bytes},
        .text_address = CODE_START,
        .code_count = 1,
        .code = {{CODE_START, 0, CODE_BYTES}},
    };
    struct go_frames go;
    (void)go_frames_open(&frames, &go);
    go_frames_until(&go, 0, CODE_START + CODE_BYTES / 2, &sink);
    go_frames_until(&go, order.end, UINT64_MAX, &sink);
    go_frames_close(&go);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    int fd = memfd_create("input", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && write(fd, data + 2, size - 2) == (ssize_t)size - 2);
    uint64_t index_bytes = data[1] * 8ULL;
    if (data[0] & 1)
        read_elf(fd);
    else if (data[0] & 8)
        read_go_table(fd, size - 2);
    else
        read_section(fd, data[0], index_bytes < size - 2 ? index_bytes : 0, size - 2);
    close(fd);
    return 0;
}
