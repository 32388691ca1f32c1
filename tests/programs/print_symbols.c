/*
 * print_symbols TABLE [starts]: prints the contents of a symbol table, to compare them with the
 * output of other tools.
 *
 * Without "starts", reads addresses in hexadecimal from standard input, one per line, and prints
 * for each the address, one line per frame, leaf first, with full name, linkage name, file and line
 * between tabs, and an empty line. With "starts", looks up every address of the table and prints
 * each address whose frames differ from those of the address before, and that address before; those
 * without frames are left out.
 */
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_table.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_frame(struct symbol_names *names, const struct symbol_frame *frame)
{
    struct err err;
    struct symbol_name name = {0};
    struct span file = {0};
    if (symbol_names_function(names, frame->function, &name, &err))
        name = (struct symbol_name){0};
    printf("%.*s\t%.*s\t", SPAN_PRINT(name.full), SPAN_PRINT(name.linkage));
    if (frame->file == SYMBOL_NONE || symbol_names_file(names, frame->file, &file, &err))
        file = SPAN_LITERAL("");
    printf("%.*s\t%u\n", SPAN_PRINT(file), frame->line);
}

static void print_address(struct symbol_cursor *cursor, struct symbol_names *names,
                          uint64_t address)
{
    uint32_t count = symbol_cursor_find(cursor, address);
    printf("0x%" PRIx64 "\n", address);
    for (uint32_t i = 0; i < count; i++)
        print_frame(names, &cursor->frames[i]);
    printf("\n");
}

static void print_starts(const struct symbol_table *table, struct symbol_cursor *cursor)
{
    static struct symbol_frame last[SYMBOL_DEPTH_MAX];
    struct symbol_table_sizes sizes = symbol_table_sizes(table);
    uint32_t last_count = 0;
    for (uint64_t address = sizes.first_address; address < sizes.end_address; address++) {
        uint32_t count = symbol_cursor_find(cursor, address);
        if (count == last_count && memcmp(cursor->frames, last, count * sizeof(last[0])) == 0)
            continue;
        if (last_count)
            printf("0x%" PRIx64 "\n", address - 1);
        if (count)
            printf("0x%" PRIx64 "\n", address);
        last_count = count;
        memcpy(last, cursor->frames, count * sizeof(last[0]));
    }
}

int main(int argc, char **argv)
{
    struct symbol_table *table;
    struct err err;
    char line[64];
    int fd = argc > 1 ? os_openat(AT_FDCWD, argv[1], O_RDONLY, 0) : -1;
    if (fd < 0 || symbol_table_open_fd(fd, &table, &err) || symbol_table_verify(table, &err)) {
        fprintf(stderr, "%s\n", fd < 0 ? "cannot open the table" : err.message);
        return 1;
    }
    static struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    struct symbol_names *names = symbol_names_create(table);
    if (argc > 2)
        print_starts(table, &cursor);
    while (argc <= 2 && fgets(line, sizeof(line), stdin))
        print_address(&cursor, names, strtoull(line, NULL, 16));
    symbol_names_destroy(names);
    symbol_table_close(table);
    return 0;
}
