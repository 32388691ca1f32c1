/*
 * bench_symbols [TABLE…]: symbol tables, CPU time of one thread. Prints rows of tests/bench/run.py:
 * name,figure,unit,goal,met.
 * bench_symbols --addresses COUNT TABLE: addresses of the table, hexadecimal, one per line.
 * bench_symbols --run COMMAND…: "CPU seconds,peak MiB,seconds" of a command and its children. The
 * caller must not use much memory, because Linux also counts the memory that the process had before
 * it executed the command.
 * bench_symbols --resolve FILE TABLE: "random,one by one,sorted" in M/s for the addresses in such a
 * file: a batch of random addresses that is sorted first, as lib/profile/symbolize.c does with
 * those of a profile; each address by itself; and the batch when it is sorted already.
 *
 * Without an argument, a table is generated, always the same, of the size of the debug information
 * of a large C++ program: 150,000 functions, a million inlined calls, 1.6 million ranges. Arguments
 * are tables of real files. Addresses are drawn from the table; each is resolved to its whole chain
 * of inlined functions, without names.
 */
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/radix_sort.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_pack.h"
#include "lib/symbols/symbol_table.h"
#include "lib/symbols/symbol_table_writer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RUNS = 5,
    ADDRESSES = 1000000,
    BATCH = 200000,
    FUNCTIONS = 150000,
    RANGES = 1640000,
    TABLE_MAX_BYTES = 1 << 30
};

/* xorshift64*, so that the table is the same on all platforms. */
static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static uint32_t below(uint32_t limit)
{
    return (uint32_t)(next_random() >> 33) % limit;
}

static void die(const struct err *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

/* ---- a table like that of a C++ program ---- */

struct made_function {
    uint32_t number;
    uint32_t file;
    uint32_t line;
};

static struct made_function make_function(struct symbol_table_writer *writer, uint32_t number)
{
    char path[96], name[160], linkage_name[160];
    const uint32_t class = number / 9;
    snprintf(path, sizeof(path), "/build/source/src/module%u/component_%u.cc", class / 700,
             class / 11);
    snprintf(name, sizeof(name),
             "example::module%u::Handler%u<std::shared_ptr<example::Item%u> >::method%u(int, "
             "std::allocator<char> const&) const",
             class / 700, class, class % 97, number);
    snprintf(linkage_name, sizeof(linkage_name),
             "_ZNK7example8module%u9Handler%uISt10shared_ptrINS_4Item%uEEE8method%uEiRKSaIcE",
             class / 700, class, class % 97, number);
    struct made_function function = {.file = symbol_table_writer_file(writer, span_text(path)),
                                     .line = 10 + number % 11 * 37};
    const struct symbol_function given = {.linkage_name = span_text(linkage_name),
                                          .name = span_text(name),
                                          .file = function.file,
                                          .line = function.line};
    function.number = symbol_table_writer_function(writer, &given);
    return function;
}

struct scan {
    struct symbol_table_writer *writer;
    const struct made_function *functions;
    uint64_t address;
    uint32_t left; /* ranges of the function */
};

/* Some ranges of a function's own code, with inlined calls between them. */
static void make_body(struct scan *scan, uint32_t node, const struct made_function *function,
                      uint32_t depth)
{
    uint32_t line = function->line + below(4);
    for (uint32_t part = 1 + below(4); part && scan->left; part--) {
        if (depth < 12 && below(5) < 3) {
            const uint32_t popular = below(FUNCTIONS / 8);
            const struct made_function *inlined =
                &scan->functions[below(3) ? popular : below(FUNCTIONS)];
            make_body(
                scan,
                symbol_table_writer_node(scan->writer, node, inlined->number, function->file, line),
                inlined, depth + 1);
        }
        if (scan->left == 0)
            return;
        const uint64_t end = scan->address + 2 + below(16);
        symbol_table_writer_range(scan->writer, scan->address, end, node, function->file, line);
        scan->address = end;
        scan->left--;
        line += below(5);
    }
}

static void make_ranges(struct symbol_table_writer *writer, const struct made_function *functions)
{
    struct scan scan = {.writer = writer, .functions = functions, .address = 0x400000};
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        const uint32_t root =
            symbol_table_writer_node(writer, SYMBOL_NONE, functions[i].number, SYMBOL_NONE, 0);
        scan.left = 1 + below(2 * RANGES / FUNCTIONS);
        while (scan.left)
            make_body(&scan, root, &functions[i], 0);
        scan.address = (scan.address + 15) / 16 * 16;
    }
}

static void make_table(struct buf *output)
{
    const struct symbol_table_facts facts = {.quality = SYMBOL_HAS_DWARF};
    struct symbol_table_writer *writer = symbol_table_writer_create(NULL);
    struct made_function *functions = mem_new(struct made_function, FUNCTIONS);
    struct err err;
    random_state = 12345;
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        functions[i] = make_function(writer, i);
    make_ranges(writer, functions);
    if (symbol_table_writer_finish(writer, &facts, output, &err))
        die(&err);
    mem_free(functions);
    symbol_table_writer_destroy(writer);
}

/* ---- rows ---- */

static void print_row(const char *what, const char *part, double figure, const char *unit)
{
    printf("\"symbols, %s: %s\",%.3f,%s,,\n", what, part, figure, unit);
}

static void print_goal(const char *what, const char *part, double figure, const char *unit,
                       double goal, bool is_most)
{
    const bool is_met = is_most ? figure <= goal : figure >= goal;
    printf("\"symbols, %s: %s\",%.3f,%s,%s %g,%s\n", what, part, figure, unit,
           is_most ? "at most" : "at least", goal, is_met ? "yes" : "no");
}

/* ---- measuring ---- */

static int compare_addresses(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* ADDRESSES random addresses that have a result; the caller frees them. */
static uint64_t *draw_addresses(const struct symbol_table *table)
{
    const struct symbol_table_sizes sizes = symbol_table_sizes(table);
    uint64_t *addresses = mem_new(uint64_t, ADDRESSES);
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    random_state = 98765;
    for (uint32_t i = 0; i < ADDRESSES;) {
        addresses[i] =
            sizes.first_address + next_random() % (sizes.end_address - sizes.first_address);
        i += symbol_cursor_find(&cursor, addresses[i]) > 0;
    }
    return addresses;
}

struct lookup_cost {
    int64_t ns;      /* the median of the runs */
    uint64_t frames; /* of one run */
};

/* ORDERED: the addresses are sorted first, which is a part of the measured time. */
enum how { ONE_BY_ONE, ORDERED };

static uint64_t find_all(const struct symbol_table *table, const uint64_t *addresses,
                         uint32_t count, enum how how)
{
    struct symbol_cursor cursor;
    uint64_t frames = 0;
    symbol_cursor_init(&cursor, table);
    if (how == ONE_BY_ONE) {
        for (uint32_t i = 0; i < count; i++)
            frames += symbol_cursor_find(&cursor, addresses[i]);
        return frames;
    }
    uint32_t *order = mem_resize(NULL, count, sizeof(*order));
    radix_sort_order(addresses, count, order);
    for (uint32_t i = 0; i < count; i++)
        frames += symbol_cursor_find(&cursor, addresses[order[i]]);
    mem_free(order);
    return frames;
}

static struct lookup_cost resolve(const struct symbol_table *table, const uint64_t *addresses,
                                  uint32_t count, enum how how)
{
    int64_t times[RUNS];
    struct lookup_cost cost = {0};
    for (int run = 0; run < RUNS; run++) {
        const int64_t start = clock_thread_cpu_ns();
        cost.frames = find_all(table, addresses, count, how);
        times[run] = clock_thread_cpu_ns() - start;
    }
    qsort(times, RUNS, sizeof(times[0]), compare_times);
    cost.ns = times[RUNS / 2];
    return cost;
}

static double millions_per_second(uint32_t count, int64_t ns)
{
    return (double)count * 1e3 / (double)ns;
}

static void bench_lookups(const char *what, const struct symbol_table *table)
{
    uint64_t *addresses = draw_addresses(table);
    struct lookup_cost cost = resolve(table, addresses, ADDRESSES, ONE_BY_ONE);
    print_row(what, "frames of an address", (double)cost.frames / ADDRESSES, "");
    print_goal(what, "random, one by one", millions_per_second(ADDRESSES, cost.ns), "M/s", 2,
               false);
    cost = resolve(table, addresses, BATCH, ORDERED);
    print_goal(what, "200000 random, put in order", millions_per_second(BATCH, cost.ns), "M/s", 2,
               false);
    qsort(addresses, BATCH, sizeof(addresses[0]), compare_addresses);
    cost = resolve(table, addresses, BATCH, ORDERED);
    print_goal(what, "200000 sorted", millions_per_second(BATCH, cost.ns), "M/s", 5, false);
    mem_free(addresses);
}

static void bench_names(const char *what, const struct symbol_table *table)
{
    const uint32_t count = symbol_table_sizes(table).functions;
    struct symbol_names *names = symbol_names_create(table);
    size_t bytes = 0;
    const int64_t start = clock_thread_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        struct symbol_name name;
        struct err err;
        if (symbol_names_function(names, i, &name, &err))
            die(&err);
        bytes += name.full.size;
    }
    const int64_t ns = clock_thread_cpu_ns() - start;
    print_row(what, "full names", (double)bytes / 1e6, "MB");
    print_row(what, "names, all in order", millions_per_second(count, ns), "M/s");
    symbol_names_destroy(names);
}

static double resident_mib(void)
{
    char line[256];
    double kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return 0;
    while (fgets(line, sizeof(line), status)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtod(line + 6, NULL);
    }
    fclose(status);
    return kib / 1024;
}

static double cpu_s_since(int64_t start)
{
    return (double)(clock_thread_cpu_ns() - start) / 1e9;
}

/* The stored table, and the work of a server before it reads the table. */
static void bench_pack(const char *what, const struct symbol_table *table)
{
    struct err err;
    buf_auto packed, unpacked;
    buf_init(&packed, TABLE_MAX_BYTES);
    buf_init(&unpacked, TABLE_MAX_BYTES);
    int64_t start = clock_thread_cpu_ns();
    if (symbol_pack(table, &packed, &err))
        die(&err);
    print_row(what, "packing", cpu_s_since(start), "CPU s");
    print_row(what, "packed", (double)packed.size / 1e6, "MB");
    start = clock_thread_cpu_ns();
    if (symbol_unpack(buf_span(&packed), &unpacked, &err))
        die(&err);
    print_row(what, "unpacking", cpu_s_since(start), "CPU s");
}

static void bench_table(const char *what, const struct symbol_table *table)
{
    const struct symbol_table_sizes sizes = symbol_table_sizes(table);
    struct err err;
    print_row(what, "records", sizes.records, "");
    print_row(what, "nodes", sizes.nodes, "");
    print_row(what, "functions", sizes.functions, "");
    print_row(what, "size", (double)sizes.bytes / 1e6, "MB");
    print_goal(what, "size of a record", (double)sizes.bytes / sizes.records, "bytes", 9.8, true);
    bench_lookups(what, table);
    bench_names(what, table);
    print_goal(what, "resident after all that", resident_mib(), "MiB", 64, true);
    const int64_t start = clock_thread_cpu_ns();
    if (symbol_table_verify(table, &err))
        die(&err);
    print_row(what, "verify", cpu_s_since(start), "CPU s");
    bench_pack(what, table);
}

static struct symbol_table *open_file(const char *path)
{
    struct symbol_table *table;
    struct err err;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || symbol_table_open_fd(fd, &table, &err)) {
        fprintf(stderr, "%s: %s\n", path, fd < 0 ? "cannot be opened" : err.message);
        exit(1);
    }
    close(fd);
    return table;
}

static void bench_file(const char *path)
{
    struct symbol_table *table = open_file(path);
    bench_table(path, table);
    symbol_table_close(table);
}

static void print_addresses(uint64_t count, const char *path)
{
    struct symbol_table *table = open_file(path);
    uint64_t *addresses = draw_addresses(table);
    for (uint64_t i = 0; i < count && i < ADDRESSES; i++)
        printf("%" PRIx64 "\n", addresses[i]);
    mem_free(addresses);
    symbol_table_close(table);
}

static uint32_t read_addresses(const char *path, uint64_t *addresses)
{
    uint32_t count = 0;
    FILE *file = fopen(path, "re");
    while (file && count < ADDRESSES && fscanf(file, "%" SCNx64, &addresses[count]) == 1)
        count++;
    if (file)
        fclose(file);
    return count;
}

static void resolve_file(const char *path, const char *table_path)
{
    struct symbol_table *table = open_file(table_path);
    uint64_t *addresses = mem_new(uint64_t, ADDRESSES);
    const uint32_t count = read_addresses(path, addresses);
    double speeds[3];
    resolve(table, addresses, count, ONE_BY_ONE);
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            qsort(addresses, count, sizeof(addresses[0]), compare_addresses);
        const enum how how = i == 1 ? ONE_BY_ONE : ORDERED;
        speeds[i] = millions_per_second(count, resolve(table, addresses, count, how).ns);
    }
    printf("%.4f,%.4f,%.4f\n", speeds[0], speeds[1], speeds[2]);
    mem_free(addresses);
    symbol_table_close(table);
}

/* Written to a file, so that the reader maps it as a server does. */
static void bench_made(void)
{
    char path[] = "/tmp/bench_symbols.XXXXXX";
    struct buf bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    const int64_t start = clock_thread_cpu_ns();
    make_table(&bytes);
    print_row("made", "writing", cpu_s_since(start), "CPU s");
    print_row("made", "resident after writing", resident_mib(), "MiB");
    const int fd = mkstemp(path);
    struct symbol_table *table;
    struct err err;
    if (fd < 0 || write(fd, bytes.data, bytes.size) != (ssize_t)bytes.size || unlink(path) < 0) {
        perror(path);
        exit(1);
    }
    buf_fini(&bytes);
    mem_trim();
    if (symbol_table_open_fd(fd, &table, &err))
        die(&err);
    close(fd);
    bench_table("made", table);
    symbol_table_close(table);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static int run(char **command)
{
    struct rusage usage;
    int status;
    const int64_t start = clock_monotonic_ns();
    const pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout))
            execvp(command[0], command);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
        return 1;
    printf("%.6f,%.2f,%.6f\n", seconds(usage.ru_utime) + seconds(usage.ru_stime),
           (double)usage.ru_maxrss / 1024, (double)(clock_monotonic_ns() - start) / 1e9);
    return 0;
}

int main(int count, char **arguments)
{
    uint64_t addresses;
    if (count == 4 && strcmp(arguments[1], "--addresses") == 0 &&
        span_parse_u64(span_text(arguments[2]), &addresses)) {
        print_addresses(addresses, arguments[3]);
        return 0;
    }
    if (count == 4 && strcmp(arguments[1], "--resolve") == 0) {
        resolve_file(arguments[2], arguments[3]);
        return 0;
    }
    if (count > 2 && strcmp(arguments[1], "--run") == 0)
        return run(arguments + 2);
    for (int i = 1; i < count; i++)
        bench_file(arguments[i]);
    if (count == 1)
        bench_made();
    return 0;
}
