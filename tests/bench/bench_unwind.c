/*
 * Compares the builder of unwind tables with elfutils in one run:
 *
 *   bench_unwind [FILE...]      default: libc, libcrypto, libLLVM, node and others that exist
 *
 * Prints for each file the bytes of .eh_frame, the rows, the bytes of the table, and the CPU time
 * of the best of several rounds for the agent's builder and for elfutils (dwarf_cfi_addrframe,
 * dwarf_frame_cfa, and dwarf_frame_register of the frame pointer and the return address, for every
 * row). Also prints the peak memory of the builder without the tables themselves.
 */
#include "agent/unwind/unwind_table.h"
#include "lib/base/err.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7 };

static const char *const usual_files[] = {
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
    "/usr/lib/postgresql/15/bin/postgres",
    "/usr/bin/python3.11",
    "/usr/bin/node",
    "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
    "/lib/aarch64-linux-gnu/libc.so.6",
};

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss;
}

static double build_seconds(int fd, const char *path, struct unwind_table **ret_table)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        struct err err;
        struct unwind_table *table;
        double start = processor_seconds();
        if (unwind_table_build(fd, path, NULL, &table, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return -1;
        }
        double seconds = processor_seconds() - start;
        best = seconds < best ? seconds : best;
        unwind_table_destroy(*ret_table);
        *ret_table = table;
    }
    return best;
}

struct evaluation {
    Dwarf_CFI *cfi;
    int fp;
    int ra;
    unsigned long row_count;
};

static void ignore_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    (void)context;
    (void)address;
    (void)rule;
}

static void evaluate_function(void *context, uint64_t start, uint64_t end)
{
    struct evaluation *evaluation = context;
    for (uint64_t at = start; at < end;) {
        Dwarf_Frame *frame;
        Dwarf_Addr frame_start, frame_end;
        Dwarf_Op memory[3], *ops;
        size_t count;
        if (dwarf_cfi_addrframe(evaluation->cfi, at, &frame) != 0)
            return;
        dwarf_frame_info(frame, &frame_start, &frame_end, NULL);
        dwarf_frame_cfa(frame, &ops, &count);
        dwarf_frame_register(frame, evaluation->fp, memory, &ops, &count);
        dwarf_frame_register(frame, evaluation->ra, memory, &ops, &count);
        free(frame);
        evaluation->row_count++;
        at = frame_end > at ? frame_end : end;
    }
}

struct functions {
    uint64_t (*list)[2];
    size_t count;
    size_t capacity;
};

static void collect(void *context, uint64_t start, uint64_t end)
{
    struct functions *functions = context;
    if (functions->count == functions->capacity) {
        functions->capacity = functions->capacity ? functions->capacity * 2 : 4096;
        functions->list = realloc(functions->list, functions->capacity * sizeof *functions->list);
        if (!functions->list)
            abort();
    }
    functions->list[functions->count][0] = start;
    functions->list[functions->count++][1] = end;
}

/* Computes the same rows with elfutils; the list of functions is given, and finding it is not
 * measured. */
static double elfutils_seconds(int fd, const char *path, const struct unwind_table *table,
                               unsigned long *ret_rows)
{
    bool is_arm64 = table->machine == EM_AARCH64;
    struct functions functions = {0};
    struct elf_frames frames;
    struct eh_frame_facts facts;
    struct eh_frame_sink sink = {collect, ignore_row, &functions, NULL};
    struct err err;
    if (elf_frames_open(fd, path, &frames, &err) || eh_frame_read(&frames, &sink, &facts, &err))
        return -1;
    double start = processor_seconds();
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    struct evaluation evaluation = {dwarf_getcfi_elf(elf), is_arm64 ? 29 : 6, is_arm64 ? 30 : 16,
                                    0};
    for (size_t i = 0; evaluation.cfi && i < functions.count; i++)
        evaluate_function(&evaluation, functions.list[i][0], functions.list[i][1]);
    dwarf_cfi_end(evaluation.cfi);
    elf_end(elf);
    double seconds = processor_seconds() - start;
    free(functions.list);
    *ret_rows = evaluation.row_count;
    return seconds;
}

static void bench(const char *path)
{
    struct unwind_table *table = NULL;
    unsigned long rows = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    malloc_trim(0);
    double before = peak_kib();
    double ours = build_seconds(fd, path, &table);
    if (ours >= 0) {
        double peak = peak_kib() - before - (double)table->facts.bytes / 1024;
        double theirs = elfutils_seconds(fd, path, table, &rows);
        double bytes = (double)table->facts.frames.section_bytes;
        printf("%-14.14s %6.2f MB %8lu rows %9u B table | %7.2f ms %5.0f MB/s %5.1f M rows/s "
               "| elfutils %8.2f ms, %4.1f times | +%.0f KiB\n",
               path + (strrchr(path, '/') ? strrchr(path, '/') - path + 1 : 0), bytes / 1e6, rows,
               (unsigned)table->facts.bytes, ours * 1e3, bytes / ours / 1e6,
               (double)rows / ours / 1e6, theirs * 1e3, theirs / ours, peak > 0 ? peak : 0.0);
    }
    unwind_table_destroy(table);
    close(fd);
}

int main(int argc, char **argv)
{
    elf_version(EV_CURRENT);
    for (int i = 1; i < argc; i++)
        bench(argv[i]);
    for (size_t i = 0; argc == 1 && i < sizeof usual_files / sizeof usual_files[0]; i++)
        bench(usual_files[i]);
    return 0;
}
