/* Data of other processes that the agent reads: the first byte selects the reader of the rest. */
#include "tests/fuzz/fuzz.h"

#include "agent/kernel/cpu_list.h"
#include "agent/kernel/perf_sideband.h"
#include "agent/ops/http_monitor.h"
#include "agent/process/elf_file.h"
#include "agent/process/proc_text.h"
#include "agent/process/process_event.h"
#include "agent/symbols/kernel_symbols.h"
#include "agent/symbols/perf_map.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <sys/mman.h>

static bool is_inside(struct span part, struct span whole)
{
    return part.size == 0 ||
           (part.data >= whole.data && part.data + part.size <= whole.data + whole.size);
}

static void read_proc(struct span text)
{
    struct span rest = text, line;
    struct proc_mapping mapping;
    struct proc_status status;
    while (span_take_line(&rest, &line)) {
        if (proc_text_mapping(line, &mapping))
            fuzz_check(mapping.start < mapping.limit && is_inside(mapping.path, text));
    }
    (void)proc_text_stat(text, &status);
    const struct span cgroup = proc_text_cgroup(text);
    fuzz_check(is_inside(cgroup, text));
    fuzz_check(is_inside(proc_text_unit(cgroup), cgroup));
    const struct span container = proc_text_container(cgroup);
    fuzz_check(container.size == 0 || container.size == 64);
}

static void read_sideband(struct span record)
{
    struct process_event event;
    if (!perf_sideband_parse(record, &event))
        return;
    fuzz_check(event.build_id_bytes <= PROCESS_EVENT_BUILD_ID_MAX_BYTES);
    fuzz_check(event.start + event.bytes >= event.start);
    fuzz_check(is_inside(event.path, record) && is_inside(event.name, record));
}

static void read_names(struct span text)
{
    struct perf_map *map = perf_map_create();
    struct kernel_symbols *symbols = kernel_symbols_create();
    struct kernel_symbol symbol;
    perf_map_take(map, text);
    kernel_symbols_read(symbols, text);
    for (uint64_t address = 1; address; address *= 3) {
        fuzz_check(perf_map_find(map, address).size <= PERF_MAP_NAME_MAX_BYTES);
        if (kernel_symbols_find(symbols, address, INT64_MIN / 2, &symbol))
            fuzz_check(symbol.start <= address);
        if (address > UINT64_MAX / 3)
            break;
    }
    perf_map_destroy(map);
    kernel_symbols_destroy(symbols);
}

static void read_elf(struct span bytes)
{
    struct elf_file file;
    struct err err;
    uint64_t address;
    fd_auto fd = memfd_create("elf", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && os_write_all(fd, bytes.data, bytes.size) == 0);
    const enum err_code code = elf_file_read(fd, "file", &file, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return;
    }
    fuzz_check(file.segment_count <= ELF_FILE_SEGMENTS_MAX);
    fuzz_check(file.build_id_bytes <= ELF_FILE_BUILD_ID_MAX_BYTES);
    (void)elf_file_address(&file, 0x1000, &address);
    (void)elf_file_address(&file, UINT64_MAX, &address);
}

static void read_cpus(struct span text)
{
    arena_auto arena = arena_create();
    uint32_t *cpus, count;
    struct err err;
    const enum err_code code = cpu_list_parse(text, arena, &cpus, &count, &err);
    fuzz_check(code ? fuzz_is_refusal(code, &err) : count > 0);
}

static void read_request(struct span head)
{
    const enum http_monitor_response kind = http_monitor_read_request(head);
    fuzz_check(kind != HTTP_MONITOR_RESPONSE_METRICS || span_starts_with(head, "GET /metrics"));
    fuzz_check(kind != HTTP_MONITOR_RESPONSE_HEALTH || span_starts_with(head, "GET /healthz"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct span) = {read_proc, read_sideband, read_names,
                                                   read_elf,  read_cpus,     read_request};
    if (size == 0)
        return 0;
    readers[data[0] % (sizeof(readers) / sizeof(*readers))](span_of(data + 1, size - 1));
    return 0;
}
