/*
 * Packs a table in four passes, each of which appends to the columns of symbol_pack_format.h:
 * declarations of functions, names, nodes, records. Then each column is compressed on its own.
 *
 * Nodes and records are compared with a model (symbol_pack_model.c), which predicts them from the
 * earlier ones. A node that is predicted costs one byte. Unpacking updates the model in the same
 * way: it knows, at each node and record, all that packing knew there.
 *
 * Example: main (function 0, declared in line 10) calls f (function 1, line 3) in lines 12 and 14,
 * and both calls are inlined. f calls g (function 2, line 1) in line 5, which is inlined, too. The
 * nodes are 0: main; 1: f, called in line 12; 2: g, called in line 5 of f; 3: f, called in line 14;
 * 4: g again.
 *
 *   node  NODE_PARENTS                    NODE_FUNCTIONS               NODE_LINES
 *   0     0: no parent                    1 + zigzag(0 - 0) = 1        -
 *   1     1: the previous node            1 + zigzag(1 - 0) = 3        zigzag(12 - 10) = 4
 *   2     1: the previous node            1 + zigzag(2 - 1) = 3        zigzag(5 - 3) = 4
 *   3     3: two levels above node 2      1 + zigzag(1 - 1) = 1        zigzag(14 - 12) = 4
 *   4     1: the previous node            0: as predicted              -
 *
 * Node 3 is the second child of main, so it is compared with its sibling, node 1. Node 4 has the
 * position of node 2, the first child of f, so its function, line and file are predicted.
 * NODE_FILES is 0 for nodes 1 to 3 if all code is in one file.
 *
 * If the code of main begins with that of nodes 0, 1 and 2, their three records are steps to the
 * next node without a record (SYMBOL_PACK_NEW, number 0). A record of main itself behind them is a
 * step to the caller two levels above node 2 (SYMBOL_PACK_UP, number 1).
 */
#include "lib/symbols/symbol_pack.h"

#include "lib/base/compress.h"
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_pack_format.h"
#include "lib/symbols/symbol_table_read.h"

#include <unistd.h>

/* zstd level; costs.md lists the small gains of higher levels. */
enum { PACK_LEVEL = 9 };

struct packer {
    const struct symbol_table *table;
    struct symbol_writer_function *functions;
    struct symbol_writer_node *nodes;
    struct symbol_pack_model model;
    struct buf columns[SYMBOL_PACK_COLUMNS];
    struct err *err;
};

bool symbol_pack_is(struct span bytes)
{
    return span_starts_with(bytes, SYMBOL_PACK_MAGIC);
}

static void append_varint(struct packer *packer, enum symbol_pack_column_kind column,
                          uint32_t number)
{
    struct buf *output = &packer->columns[column];
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(output, (uint8_t)(number | 0x80));
    buf_append_byte(output, (uint8_t)number);
}

static void append_difference(struct packer *packer, enum symbol_pack_column_kind column,
                              uint32_t number, uint32_t near)
{
    append_varint(packer, column, symbol_zigzag((int32_t)(number - near)));
}

static enum err_code set_damaged(struct packer *packer)
{
    return err_set(packer->err, ERR_CORRUPT, "damaged symbol table: it cannot be packed");
}

/* ---- functions and names ---- */

static enum err_code pack_functions(struct packer *packer)
{
    const uint32_t count = packer->table->header.function_count;
    struct symbol_declaration before = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct symbol_declaration declaration;
        if (!symbol_table_declaration(packer->table, i, &declaration))
            return set_damaged(packer);
        packer->functions[i] =
            (struct symbol_writer_function){.file = declaration.file, .line = declaration.line};
        append_difference(packer, SYMBOL_PACK_DECLARATION_FILES, declaration.file, before.file);
        append_difference(packer, SYMBOL_PACK_DECLARATION_LINES, declaration.line, before.line);
        before = declaration;
    }
    return ERR_NONE;
}

static enum err_code pack_function_names(struct packer *packer, struct symbol_names *names)
{
    for (uint32_t i = 0; i < packer->table->header.function_count; i++) {
        struct symbol_name name;
        const enum err_code code = symbol_names_function(names, i, &name, packer->err);
        if (code)
            return code;
        const struct span linkage =
            span_equal(name.full, name.linkage) ? SPAN_LITERAL("") : name.linkage;
        append_varint(packer, SYMBOL_PACK_FUNCTION_SIZES, (uint32_t)name.full.size);
        append_varint(packer, SYMBOL_PACK_FUNCTION_SIZES, (uint32_t)linkage.size);
        buf_append_span(&packer->columns[SYMBOL_PACK_FUNCTION_NAMES], name.full);
        buf_append_span(&packer->columns[SYMBOL_PACK_FUNCTION_NAMES], linkage);
    }
    return ERR_NONE;
}

static enum err_code pack_file_names(struct packer *packer, struct symbol_names *names)
{
    for (uint32_t i = 0; i < packer->table->header.file_count; i++) {
        struct span path;
        const enum err_code code = symbol_names_file(names, i, &path, packer->err);
        if (code)
            return code;
        append_varint(packer, SYMBOL_PACK_FILE_SIZES, (uint32_t)path.size);
        buf_append_span(&packer->columns[SYMBOL_PACK_FILE_NAMES], path);
    }
    return ERR_NONE;
}

static enum err_code pack_names(struct packer *packer)
{
    struct symbol_names *names = symbol_names_create(packer->table);
    enum err_code code = pack_function_names(packer, names);
    if (!code)
        code = pack_file_names(packer, names);
    symbol_names_destroy(names);
    return code;
}

/* ---- nodes ---- */

/* Reads a node and converts its call line and file to absolute values, as a writer stores them. */
static bool read_node(const struct packer *packer, uint32_t number,
                      struct symbol_writer_node *ret_node)
{
    struct symbol_node node;
    if (!symbol_table_node(packer->table, number, &node) ||
        node.function >= packer->table->header.function_count || node.parent > number)
        return false;
    *ret_node = (struct symbol_writer_node){.parent = SYMBOL_NONE, .function = node.function};
    if (node.parent == 0)
        return true;
    ret_node->parent = number - node.parent;
    const struct symbol_writer_function *caller =
        &packer->functions[packer->nodes[ret_node->parent].function];
    ret_node->call_line = caller->line + (uint32_t)node.call_line;
    ret_node->call_file = node.call_file == SYMBOL_NONE ? caller->file : node.call_file;
    return true;
}

static uint32_t encode_parent(const struct packer *packer, uint32_t number, uint32_t parent)
{
    if (parent == SYMBOL_NONE)
        return 0;
    uint32_t at = number - 1;
    for (uint32_t above = 0; at != SYMBOL_NONE && above < SYMBOL_PACK_NEAR_CALLERS;
         above++, at = packer->nodes[at].parent) {
        if (at == parent)
            return 1 + above;
    }
    return SYMBOL_PACK_FAR + number - parent;
}

static void pack_node(struct packer *packer, uint32_t number)
{
    const struct symbol_writer_node *node = &packer->nodes[number];
    const bool is_root = node->parent == SYMBOL_NONE;
    const struct symbol_pack_position position =
        symbol_pack_model_position(&packer->model, node->parent);
    const struct symbol_writer_node *predicted =
        *position.predicted_node == SYMBOL_NONE ? NULL : &packer->nodes[*position.predicted_node];
    append_varint(packer, SYMBOL_PACK_NODE_PARENTS, encode_parent(packer, number, node->parent));
    if (predicted && node->function == predicted->function &&
        (is_root ||
         (node->call_line == predicted->call_line && node->call_file == predicted->call_file))) {
        append_varint(packer, SYMBOL_PACK_NODE_FUNCTIONS, 0);
    } else {
        append_varint(packer, SYMBOL_PACK_NODE_FUNCTIONS,
                      1 + symbol_zigzag((int32_t)(node->function - position.near_function)));
        if (!is_root) {
            const uint32_t file = packer->functions[packer->nodes[node->parent].function].file;
            append_difference(packer, SYMBOL_PACK_NODE_LINES, node->call_line, position.near_line);
            append_varint(packer, SYMBOL_PACK_NODE_FILES,
                          node->call_file == file ? 0 : 1 + node->call_file);
        }
    }
    symbol_pack_model_add(&packer->model, &position);
}

static enum err_code pack_nodes(struct packer *packer)
{
    for (uint32_t i = 0; i < packer->table->header.node_count; i++) {
        if (!read_node(packer, i, &packer->nodes[i]))
            return set_damaged(packer);
        pack_node(packer, i);
    }
    return ERR_NONE;
}

/* ---- records ---- */

static uint32_t encode_step(const struct packer *packer, uint32_t node)
{
    const struct symbol_pack_model *model = &packer->model;
    if (node >= model->next_new)
        return SYMBOL_PACK_NEW + SYMBOL_PACK_STEPS * (node - model->next_new);
    if (node == model->node)
        return SYMBOL_PACK_SAME;
    uint32_t above = 0;
    for (uint32_t at = packer->nodes[model->node].parent;
         at != SYMBOL_NONE && at >= node && above < SYMBOL_PACK_NEAR_CALLERS;
         at = packer->nodes[at].parent, above++) {
        if (at == node)
            return SYMBOL_PACK_UP + SYMBOL_PACK_STEPS * above;
    }
    return SYMBOL_PACK_FROM + SYMBOL_PACK_STEPS * symbol_zigzag((int32_t)(node - model->node));
}

static void pack_record(struct packer *packer, const struct symbol_record *record)
{
    struct symbol_pack_model *model = &packer->model;
    const uint32_t node = record->node;
    const struct symbol_writer_function *function =
        &packer->functions[packer->nodes[node].function];
    const uint32_t line = function->line + (uint32_t)record->line;
    const uint32_t file = record->file ? record->file - 1 : function->file;
    append_varint(packer, SYMBOL_PACK_RECORD_NODES, encode_step(packer, node));
    append_difference(packer, SYMBOL_PACK_RECORD_LINES, line, model->lines[node]);
    append_varint(packer, SYMBOL_PACK_RECORD_FILES, file == model->files[node] ? 0 : 1 + file);
    model->lines[node] = line;
    model->files[node] = file;
    model->node = node;
    if (node >= model->next_new)
        model->next_new = node + 1;
}

static enum err_code pack_records(struct packer *packer)
{
    const struct symbol_table *table = packer->table;
    uint32_t before = 0;
    symbol_pack_model_begin_records(&packer->model);
    for (uint32_t i = 0; i < table->header.record_count; i++) {
        struct symbol_record record;
        if (!symbol_table_record(table, i / SYMBOL_RECORD_GROUP, i % SYMBOL_RECORD_GROUP, &record))
            return set_damaged(packer);
        append_varint(packer, SYMBOL_PACK_RECORD_ADDRESSES, record.address - before);
        before = record.address;
        if (record.is_gap)
            append_varint(packer, SYMBOL_PACK_RECORD_NODES, SYMBOL_PACK_SAME + SYMBOL_PACK_STEPS);
        else if (record.node < table->header.node_count)
            pack_record(packer, &record);
        else
            return set_damaged(packer);
    }
    return ERR_NONE;
}

/* ---- the whole table ---- */

/* Checks the limits that a reader enforces on the expanded size. */
static enum err_code check_ratio(const struct packer *packer, size_t packed_bytes)
{
    uint64_t flat = 0;
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++)
        flat += packer->columns[i].size;
    if (flat > SYMBOL_PACK_FLAT_MAX_BYTES ||
        flat > (uint64_t)packed_bytes * SYMBOL_PACK_MAX_RATIO + SYMBOL_PACK_RATIO_SLACK_BYTES)
        return err_set(packer->err, ERR_TOO_LARGE, "a symbol table that is not worth packing");
    return ERR_NONE;
}

static enum err_code compress_columns(const struct packer *packer,
                                      struct symbol_pack_column *columns, struct buf *packed)
{
    struct compress_zstd_writer *zstd = compress_zstd_writer_create();
    enum err_code code = ERR_NONE;
    for (int i = 0; i < SYMBOL_PACK_COLUMNS && !code; i++) {
        const struct buf *column = &packer->columns[i];
        const size_t before = packed->size;
        if (buf_failed(column))
            code = err_set(packer->err, ERR_TOO_LARGE, "too large a symbol table to be packed");
        else if (column->size)
            code = compress_zstd_with(zstd, buf_span(column), PACK_LEVEL, packed, packer->err);
        columns[i] = (struct symbol_pack_column){.packed_bytes = packed->size - before,
                                                 .flat_bytes = column->size};
    }
    compress_zstd_writer_destroy(zstd);
    return code;
}

static enum err_code append_packed(const struct packer *packer, struct buf *output)
{
    struct symbol_pack_column columns[SYMBOL_PACK_COLUMNS];
    struct symbol_table_header header = packer->table->header;
    buf_auto packed;
    buf_init(&packed, SYMBOL_PACK_FLAT_MAX_BYTES);
    enum err_code code = compress_columns(packer, columns, &packed);
    if (!code)
        code = check_ratio(packer, packed.size);
    if (code)
        return code;
    memcpy(header.magic, SYMBOL_PACK_MAGIC, sizeof(header.magic));
    header.version = SYMBOL_PACK_VERSION;
    header.section_count = SYMBOL_PACK_COLUMNS;
    header.table_bytes = sizeof(header) + sizeof(columns) + packed.size;
    header.crc = 0;
    memset(header.reserved, 0, sizeof(header.reserved));
    const uint32_t crc =
        crc32c_extend(crc32c(span_of(&header, sizeof(header))), span_of(columns, sizeof(columns)));
    header.crc = crc32c_extend(crc, buf_span(&packed));
    buf_append(output, &header, sizeof(header));
    buf_append(output, columns, sizeof(columns));
    buf_append_span(output, buf_span(&packed));
    return buf_failed(output)
               ? err_set(packer->err, ERR_TOO_LARGE, "a packed symbol table of more than %zu bytes",
                         output->max_size)
               : ERR_NONE;
}

static enum err_code pack_columns(struct packer *packer)
{
    enum err_code (*const steps[])(struct packer *) = {pack_functions, pack_names, pack_nodes,
                                                       pack_records};
    buf_append_span(&packer->columns[SYMBOL_PACK_SEGMENTS],
                    packer->table->sections[SYMBOL_SECTION_SEGMENTS]);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        const enum err_code code = steps[i](packer);
        if (code)
            return code;
    }
    return ERR_NONE;
}

enum err_code symbol_pack(const struct symbol_table *table, struct buf *output, struct err *err)
{
    const struct symbol_table_header *header = &table->header;
    struct packer packer = {.table = table, .err = err};
    packer.functions = mem_new(struct symbol_writer_function, header->function_count);
    packer.nodes = mem_new(struct symbol_writer_node, header->node_count);
    symbol_pack_model_init(&packer.model, packer.nodes, header->node_count, packer.functions);
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++)
        buf_init(&packer.columns[i], SYMBOL_PACK_FLAT_MAX_BYTES);
    enum err_code code = pack_columns(&packer);
    if (!code)
        code = append_packed(&packer, output);
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++)
        buf_fini(&packer.columns[i]);
    symbol_pack_model_fini(&packer.model);
    mem_free(packer.functions);
    mem_free(packer.nodes);
    return code;
}

enum err_code symbol_pack_write(int fd, struct span bytes, struct err *err)
{
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 ||
        os_write_all(fd, bytes.data, bytes.size) != 0)
        return err_set_errno(err, ERR_IO, "writing a symbol table");
    return ERR_NONE;
}

enum err_code symbol_pack_fd(int table_fd, int packed_fd, struct err *err)
{
    struct symbol_table *table;
    buf_auto packed;
    buf_init(&packed, SYMBOL_PACK_FLAT_MAX_BYTES);
    enum err_code code = symbol_table_open_fd(table_fd, &table, err);
    if (code)
        return code;
    code = symbol_table_verify(table, err);
    if (!code)
        code = symbol_pack(table, &packed, err);
    symbol_table_close(table);
    return code ? code : symbol_pack_write(packed_fd, buf_span(&packed), err);
}
