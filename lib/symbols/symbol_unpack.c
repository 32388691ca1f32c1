/* symbol_unpack of symbol_pack.h: the reverse of symbol_pack.c. */
#include "lib/base/compress.h"
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mapped_file.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_pack.h"
#include "lib/symbols/symbol_pack_format.h"

#include <sys/stat.h>

/* Estimates of memory, computed from the header. Unpacking libjvm.so's table, 17 MiB of columns
 * and 746,000 nodes, took 75 MiB; the estimate is 110. */
enum {
    UNPACK_SLACK_BYTES = 1 << 20,
    UNPACK_FLAT_FACTOR = 4, /* the columns, and the table while it grows */
    UNPACK_NODE_BYTES = 48, /* in the writer, the model and the encoder */
    UNPACK_FUNCTION_BYTES = 64
};

struct unpacker {
    struct span packed;
    struct symbol_table_header header;
    struct symbol_pack_column columns[SYMBOL_PACK_COLUMNS];
    uint8_t *flat[SYMBOL_PACK_COLUMNS]; /* of the columns that are being read */
    struct span rest[SYMBOL_PACK_COLUMNS];
    struct symbol_table_writer *writer;
    struct symbol_encoder encoder;
    struct symbol_pack_model model;
    struct err *err;
};

static enum err_code set_corrupt(struct unpacker *unpacker, const char *what)
{
    return err_set(unpacker->err, ERR_CORRUPT, "damaged packed symbol table: %s", what);
}

/* ---- columns ---- */

static struct span packed_column(const struct unpacker *unpacker, int kind)
{
    size_t at = sizeof(unpacker->header) + sizeof(unpacker->columns);
    for (int i = 0; i < kind; i++)
        at += (size_t)unpacker->columns[i].packed_bytes;
    return span_of(unpacker->packed.data + at, (size_t)unpacker->columns[kind].packed_bytes);
}

/* Expands the columns from first to last. They must be read to their ends before end_columns. */
static enum err_code begin_columns(struct unpacker *unpacker, int first, int last)
{
    for (int kind = first; kind <= last; kind++) {
        const size_t bytes = (size_t)unpacker->columns[kind].flat_bytes;
        const struct span packed = packed_column(unpacker, kind);
        unpacker->rest[kind] = SPAN_LITERAL("");
        if (bytes == 0 && packed.size == 0)
            continue;
        if (!compress_can_expand_to(packed, bytes))
            return set_corrupt(unpacker, "the size of a column is wrong");
        unpacker->flat[kind] = mem_resize(NULL, bytes, 1);
        if (!compress_expand_exact(packed, unpacker->flat[kind], bytes))
            return set_corrupt(unpacker, "a column does not expand");
        unpacker->rest[kind] = span_of(unpacker->flat[kind], bytes);
    }
    return ERR_NONE;
}

static enum err_code end_columns(struct unpacker *unpacker, int first, int last)
{
    bool has_more = false;
    for (int kind = first; kind <= last; kind++) {
        has_more |= unpacker->rest[kind].size > 0;
        mem_free(unpacker->flat[kind]);
        unpacker->flat[kind] = NULL;
    }
    return has_more ? set_corrupt(unpacker, "a column has bytes left over") : ERR_NONE;
}

static inline bool read_number(struct unpacker *unpacker, int kind, uint32_t *ret_number)
{
    struct span *rest = &unpacker->rest[kind];
    uint32_t number = 0;
    for (size_t i = 0; i < rest->size && i < SYMBOL_VARINT_MAX_BYTES; i++) {
        const uint32_t byte = rest->data[i];
        number |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = span_of(rest->data + i + 1, rest->size - i - 1);
            *ret_number = number;
            return true;
        }
    }
    return false;
}

/* Reads near plus the next signed difference of the column; false if the result exceeds limit. */
static inline bool read_difference(struct unpacker *unpacker, int kind, uint32_t near,
                                   uint32_t limit, uint32_t *ret_number)
{
    uint32_t number;
    if (!read_number(unpacker, kind, &number))
        return false;
    *ret_number = near + (uint32_t)symbol_unzigzag(number);
    return *ret_number <= limit;
}

static bool read_text(struct unpacker *unpacker, int sizes, int texts, uint32_t max_bytes,
                      struct span *ret_text)
{
    uint32_t size;
    struct span *rest = &unpacker->rest[texts];
    if (!read_number(unpacker, sizes, &size) || size > max_bytes || size > rest->size)
        return false;
    *ret_text = span_of(rest->data, size);
    *rest = span_of(rest->data + size, rest->size - size);
    return true;
}

/* ---- head ---- */

static enum err_code check_columns(struct unpacker *unpacker)
{
    uint64_t packed = 0, flat = 0;
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++) {
        const struct symbol_pack_column *column = &unpacker->columns[i];
        if (column->packed_bytes > unpacker->packed.size ||
            column->flat_bytes > SYMBOL_PACK_FLAT_MAX_BYTES)
            return set_corrupt(unpacker, "the size of a column is invalid");
        packed += column->packed_bytes;
        flat += column->flat_bytes;
    }
    if (packed + sizeof(unpacker->header) + sizeof(unpacker->columns) != unpacker->packed.size)
        return set_corrupt(unpacker, "the sizes of its columns do not add up");
    if (flat > SYMBOL_PACK_FLAT_MAX_BYTES ||
        flat > packed * SYMBOL_PACK_MAX_RATIO + SYMBOL_PACK_RATIO_SLACK_BYTES)
        return err_set(unpacker->err, ERR_TOO_LARGE,
                       "a packed symbol table that expands to %llu bytes",
                       (unsigned long long)flat);
    return ERR_NONE;
}

static enum err_code check_counts(struct unpacker *unpacker)
{
    const struct symbol_table_header *header = &unpacker->header;
    if (header->record_count > 4 * SYMBOL_RANGE_MAX_COUNT ||
        header->node_count > SYMBOL_NODE_MAX_COUNT ||
        header->function_count > SYMBOL_FUNCTION_MAX_COUNT ||
        header->file_count > SYMBOL_FILE_MAX_COUNT ||
        header->segment_count > SYMBOL_SEGMENT_MAX_COUNT ||
        header->id_bytes > SYMBOL_ID_MAX_BYTES || header->address_bytes > INT32_MAX ||
        header->first_address > UINT64_MAX - header->address_bytes)
        return set_corrupt(unpacker, "a count exceeds its limit");
    /* Each item takes at least one byte of its column, so memory is allocated only for items
     * that exist. */
    const struct symbol_pack_column *columns = unpacker->columns;
    if (header->function_count > columns[SYMBOL_PACK_DECLARATION_FILES].flat_bytes ||
        header->node_count > columns[SYMBOL_PACK_NODE_PARENTS].flat_bytes ||
        header->record_count > columns[SYMBOL_PACK_RECORD_ADDRESSES].flat_bytes ||
        header->file_count > columns[SYMBOL_PACK_FILE_SIZES].flat_bytes ||
        header->segment_count * sizeof(struct symbol_table_segment) !=
            columns[SYMBOL_PACK_SEGMENTS].flat_bytes)
        return set_corrupt(unpacker, "a count does not match its column");
    return ERR_NONE;
}

static enum err_code read_head(struct unpacker *unpacker)
{
    struct symbol_table_header *header = &unpacker->header;
    const size_t head_bytes = sizeof(*header) + sizeof(unpacker->columns);
    if (!symbol_pack_is(unpacker->packed) || unpacker->packed.size < sizeof(*header))
        return err_set(unpacker->err, ERR_INVALID, "not a packed symbol table");
    memcpy(header, unpacker->packed.data, sizeof(*header));
    if (header->version != SYMBOL_PACK_VERSION)
        return err_set(
            unpacker->err, ERR_UNSUPPORTED,
            "packed symbol table version %u is not supported; this program supports version %d",
            header->version, SYMBOL_PACK_VERSION);
    if (header->table_bytes != unpacker->packed.size || unpacker->packed.size < head_bytes ||
        header->section_count != SYMBOL_PACK_COLUMNS)
        return set_corrupt(unpacker, "its size does not match its header");
    const uint32_t crc = header->crc;
    header->crc = 0;
    const struct span rest =
        span_of(unpacker->packed.data + sizeof(*header), unpacker->packed.size - sizeof(*header));
    if (crc32c_extend(crc32c(span_of(header, sizeof(*header))), rest) != crc)
        return set_corrupt(unpacker, "its checksum is wrong");
    memcpy(unpacker->columns, rest.data, sizeof(unpacker->columns));
    const enum err_code code = check_columns(unpacker);
    return code ? code : check_counts(unpacker);
}

/* ---- segments, functions ---- */

static enum err_code unpack_segments(struct unpacker *unpacker)
{
    enum err_code code = begin_columns(unpacker, SYMBOL_PACK_SEGMENTS, SYMBOL_PACK_SEGMENTS);
    struct span *rest = &unpacker->rest[SYMBOL_PACK_SEGMENTS];
    for (uint32_t i = 0; !code && i < unpacker->header.segment_count; i++) {
        struct symbol_table_segment bytes;
        memcpy(&bytes, rest->data + i * sizeof(bytes), sizeof(bytes));
        const struct symbol_segment segment = {.offset = bytes.offset,
                                               .address = bytes.address,
                                               .file_bytes = bytes.file_bytes,
                                               .memory_bytes = bytes.memory_bytes,
                                               .alignment = bytes.alignment,
                                               .flags = bytes.flags};
        symbol_table_writer_segment(unpacker->writer, &segment);
    }
    *rest = SPAN_LITERAL("");
    return code ? code : end_columns(unpacker, SYMBOL_PACK_SEGMENTS, SYMBOL_PACK_SEGMENTS);
}

static bool read_declaration(struct unpacker *unpacker, struct symbol_writer_function *function,
                             const struct symbol_writer_function *before)
{
    return read_difference(unpacker, SYMBOL_PACK_DECLARATION_FILES, before->file,
                           unpacker->header.file_count, &function->file) &&
           read_difference(unpacker, SYMBOL_PACK_DECLARATION_LINES, before->line, SYMBOL_LINE_MAX,
                           &function->line);
}

static enum err_code unpack_functions(struct unpacker *unpacker)
{
    struct symbol_table_writer *writer = unpacker->writer;
    const uint32_t count = unpacker->header.function_count;
    const struct symbol_writer_function none = {0};
    enum err_code code =
        begin_columns(unpacker, SYMBOL_PACK_DECLARATION_FILES, SYMBOL_PACK_DECLARATION_LINES);
    if (code)
        return code;
    writer->functions = mem_new(struct symbol_writer_function, count);
    writer->file_count = unpacker->header.file_count;
    for (; writer->function_count < count; writer->function_count++) {
        struct symbol_writer_function *function = &writer->functions[writer->function_count];
        if (!read_declaration(unpacker, function, writer->function_count ? function - 1 : &none))
            return set_corrupt(unpacker, "the declaration of a function is invalid");
    }
    return end_columns(unpacker, SYMBOL_PACK_DECLARATION_FILES, SYMBOL_PACK_DECLARATION_LINES);
}

/* ---- nodes ---- */

static bool read_parent(struct unpacker *unpacker, uint32_t number, uint32_t *ret_parent)
{
    uint32_t code;
    if (!read_number(unpacker, SYMBOL_PACK_NODE_PARENTS, &code))
        return false;
    *ret_parent = SYMBOL_NONE;
    if (code == 0)
        return true;
    if (code >= SYMBOL_PACK_FAR) {
        const uint32_t distance = code - SYMBOL_PACK_FAR;
        *ret_parent = number - distance;
        return distance && distance <= number;
    }
    uint32_t at = number ? number - 1 : SYMBOL_NONE;
    for (; at != SYMBOL_NONE && --code; at = unpacker->writer->nodes[at].parent)
        ;
    *ret_parent = at;
    return at != SYMBOL_NONE;
}

/* Reads a node that was not predicted. */
static bool read_explicit_node(struct unpacker *unpacker, struct symbol_writer_node *node,
                               uint32_t code, const struct symbol_pack_position *position)
{
    const struct symbol_table_writer *writer = unpacker->writer;
    uint32_t file;
    node->function = position->near_function + (uint32_t)symbol_unzigzag(code - 1);
    if (node->function >= writer->function_count)
        return false;
    if (node->parent == SYMBOL_NONE)
        return true;
    if (!read_difference(unpacker, SYMBOL_PACK_NODE_LINES, position->near_line, SYMBOL_LINE_MAX,
                         &node->call_line) ||
        !read_number(unpacker, SYMBOL_PACK_NODE_FILES, &file))
        return false;
    node->call_file =
        file ? file - 1 : writer->functions[writer->nodes[node->parent].function].file;
    return node->call_file <= writer->file_count;
}

static bool unpack_node(struct unpacker *unpacker, uint32_t number)
{
    struct symbol_table_writer *writer = unpacker->writer;
    struct symbol_writer_node *node = &writer->nodes[number];
    uint32_t code;
    *node = (struct symbol_writer_node){0};
    if (!read_parent(unpacker, number, &node->parent) ||
        !read_number(unpacker, SYMBOL_PACK_NODE_FUNCTIONS, &code))
        return false;
    const bool is_root = node->parent == SYMBOL_NONE;
    writer->node_depths[number] = (uint16_t)(is_root ? 1 : writer->node_depths[node->parent] + 1);
    const struct symbol_pack_position position =
        symbol_pack_model_position(&unpacker->model, node->parent);
    if (writer->node_depths[number] > SYMBOL_DEPTH_MAX ||
        (code == 0 && *position.predicted_node == SYMBOL_NONE))
        return false;
    if (code) {
        if (!read_explicit_node(unpacker, node, code, &position))
            return false;
    } else {
        const struct symbol_writer_node *predicted = &writer->nodes[*position.predicted_node];
        node->function = predicted->function;
        node->call_line = is_root ? 0 : predicted->call_line;
        node->call_file = is_root ? 0 : predicted->call_file;
    }
    symbol_pack_model_add(&unpacker->model, &position);
    return true;
}

static enum err_code unpack_nodes(struct unpacker *unpacker)
{
    struct symbol_table_writer *writer = unpacker->writer;
    const uint32_t count = unpacker->header.node_count;
    enum err_code code = begin_columns(unpacker, SYMBOL_PACK_NODE_PARENTS, SYMBOL_PACK_NODE_FILES);
    if (code)
        return code;
    writer->nodes = mem_new(struct symbol_writer_node, count);
    writer->node_depths = mem_new(uint16_t, count);
    symbol_pack_model_init(&unpacker->model, writer->nodes, count, writer->functions);
    for (; writer->node_count < count; writer->node_count++) {
        if (!unpack_node(unpacker, writer->node_count))
            return set_corrupt(unpacker, "an inlined call is invalid");
    }
    return end_columns(unpacker, SYMBOL_PACK_NODE_PARENTS, SYMBOL_PACK_NODE_FILES);
}

/* ---- records ---- */

/* Reads the node of the next record. Returns true with SYMBOL_NONE for a gap. */
static bool read_step(struct unpacker *unpacker, uint32_t *ret_node)
{
    const struct symbol_pack_model *model = &unpacker->model;
    const struct symbol_writer_node *nodes = unpacker->writer->nodes;
    uint32_t code;
    if (!read_number(unpacker, SYMBOL_PACK_RECORD_NODES, &code))
        return false;
    uint32_t node = SYMBOL_NONE, number = code / SYMBOL_PACK_STEPS;
    switch ((enum symbol_pack_step)(code % SYMBOL_PACK_STEPS)) {
    case SYMBOL_PACK_SAME:
        *ret_node = number ? SYMBOL_NONE : model->node;
        return number == 1 || (number == 0 && model->node < model->next_new);
    case SYMBOL_PACK_NEW:
        node = model->next_new + number;
        break;
    case SYMBOL_PACK_UP:
        if (model->node >= model->next_new || number >= SYMBOL_PACK_NEAR_CALLERS)
            return false;
        node = nodes[model->node].parent;
        for (; number && node != SYMBOL_NONE; number--)
            node = nodes[node].parent;
        break;
    case SYMBOL_PACK_FROM:
        node = model->node + (uint32_t)symbol_unzigzag(number);
        break;
    case SYMBOL_PACK_STEPS:
        break;
    }
    *ret_node = node;
    return node < unpacker->header.node_count;
}

static bool read_record_line(struct unpacker *unpacker, uint64_t address, uint32_t node)
{
    struct symbol_pack_model *model = &unpacker->model;
    uint32_t file;
    if (!read_difference(unpacker, SYMBOL_PACK_RECORD_LINES, model->lines[node], SYMBOL_LINE_MAX,
                         &model->lines[node]) ||
        !read_number(unpacker, SYMBOL_PACK_RECORD_FILES, &file))
        return false;
    if (file)
        model->files[node] = file - 1;
    model->node = node;
    if (node >= model->next_new)
        model->next_new = node + 1;
    if (model->files[node] > unpacker->header.file_count)
        return false;
    symbol_encoder_append_record(&unpacker->encoder, address, node, model->files[node],
                                 model->lines[node]);
    return true;
}

static bool unpack_record(struct unpacker *unpacker, uint32_t number, uint32_t *address)
{
    const struct symbol_table_header *header = &unpacker->header;
    uint32_t difference, node;
    if (!read_number(unpacker, SYMBOL_PACK_RECORD_ADDRESSES, &difference) ||
        (difference == 0) != (number == 0) || difference > header->address_bytes - *address ||
        !read_step(unpacker, &node))
        return false;
    *address += difference;
    const uint64_t at = header->first_address + *address;
    if (node != SYMBOL_NONE)
        return read_record_line(unpacker, at, node);
    symbol_encoder_append_gap(&unpacker->encoder, at);
    /* The last record ends the table and must be a gap. */
    return number + 1 < header->record_count || *address == header->address_bytes;
}

static enum err_code unpack_records(struct unpacker *unpacker)
{
    const struct symbol_table_header *header = &unpacker->header;
    uint32_t address = 0;
    symbol_pack_model_begin_records(&unpacker->model);
    symbol_encoder_begin(&unpacker->encoder, unpacker->writer, header->first_address);
    enum err_code code =
        begin_columns(unpacker, SYMBOL_PACK_RECORD_ADDRESSES, SYMBOL_PACK_RECORD_FILES);
    for (uint32_t i = 0; !code && i < header->record_count; i++) {
        if (!unpack_record(unpacker, i, &address))
            return set_corrupt(unpacker, "a record is invalid");
    }
    if (!code && (address != header->address_bytes ||
                  (header->record_count && unpacker->encoder.node != SYMBOL_NONE)))
        return set_corrupt(unpacker, "its last record is invalid");
    if (!code)
        symbol_encoder_end(&unpacker->encoder, header->first_address + address);
    return code ? code
                : end_columns(unpacker, SYMBOL_PACK_RECORD_ADDRESSES, SYMBOL_PACK_RECORD_FILES);
}

/* ---- names ---- */

static enum err_code unpack_function_names(struct unpacker *unpacker)
{
    enum err_code code =
        begin_columns(unpacker, SYMBOL_PACK_FUNCTION_SIZES, SYMBOL_PACK_FUNCTION_NAMES);
    for (uint32_t i = 0; !code && i < unpacker->header.function_count; i++) {
        struct span full, linkage;
        if (!read_text(unpacker, SYMBOL_PACK_FUNCTION_SIZES, SYMBOL_PACK_FUNCTION_NAMES,
                       SYMBOL_NAME_MAX_BYTES, &full) ||
            !read_text(unpacker, SYMBOL_PACK_FUNCTION_SIZES, SYMBOL_PACK_FUNCTION_NAMES,
                       SYMBOL_NAME_MAX_BYTES, &linkage))
            return set_corrupt(unpacker, "the name of a function is invalid");
        symbol_strings_writer_add(&unpacker->writer->names, full, linkage);
    }
    return code ? code
                : end_columns(unpacker, SYMBOL_PACK_FUNCTION_SIZES, SYMBOL_PACK_FUNCTION_NAMES);
}

static enum err_code unpack_file_names(struct unpacker *unpacker)
{
    enum err_code code = begin_columns(unpacker, SYMBOL_PACK_FILE_SIZES, SYMBOL_PACK_FILE_NAMES);
    for (uint32_t i = 0; !code && i < unpacker->header.file_count; i++) {
        struct span path;
        if (!read_text(unpacker, SYMBOL_PACK_FILE_SIZES, SYMBOL_PACK_FILE_NAMES,
                       SYMBOL_PATH_MAX_BYTES, &path))
            return set_corrupt(unpacker, "the path of a file is invalid");
        symbol_strings_writer_add(&unpacker->writer->paths, path, SPAN_LITERAL(""));
    }
    return code ? code : end_columns(unpacker, SYMBOL_PACK_FILE_SIZES, SYMBOL_PACK_FILE_NAMES);
}

/* ---- the whole table ---- */

static enum err_code unpack_table(struct unpacker *unpacker, struct buf *output)
{
    const struct symbol_table_header *header = &unpacker->header;
    struct symbol_table_facts facts = {.id_kind = header->id_kind,
                                       .id_bytes = header->id_bytes,
                                       .machine = header->machine,
                                       .quality = header->quality,
                                       .broken_units = header->broken_units,
                                       .builder_version = header->builder_version};
    memcpy(facts.id, header->id, header->id_bytes);
    enum err_code code = unpack_segments(unpacker);
    if (code)
        return code;
    code = unpack_functions(unpacker);
    if (code)
        return code;
    code = unpack_nodes(unpacker);
    if (code)
        return code;
    code = unpack_records(unpacker);
    if (code)
        return code;
    code = unpack_function_names(unpacker);
    if (code)
        return code;
    code = unpack_file_names(unpacker);
    if (code)
        return code;
    return symbol_encoder_write(&unpacker->encoder, &facts, output, unpacker->err);
}

enum err_code symbol_unpack(struct span packed, struct buf *output, struct err *err)
{
    /* Compress names quickly: this table is a temporary copy, and the packed form stays stored. */
    static const struct symbol_table_writer_options options = {.is_quick = true};
    struct unpacker unpacker = {.packed = packed, .err = err};
    enum err_code code = read_head(&unpacker);
    if (code)
        return code;
    unpacker.writer = symbol_table_writer_create(&options);
    code = unpack_table(&unpacker, output);
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++)
        mem_free(unpacker.flat[i]);
    symbol_encoder_fini(&unpacker.encoder);
    symbol_pack_model_fini(&unpacker.model);
    symbol_table_writer_destroy(unpacker.writer);
    return code;
}

uint64_t symbol_unpack_bytes(struct span packed)
{
    struct err ignored;
    struct unpacker unpacker = {.packed = packed, .err = &ignored};
    uint64_t flat = 0;
    if (read_head(&unpacker))
        return 0;
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++)
        flat += unpacker.columns[i].flat_bytes;
    return UNPACK_SLACK_BYTES + UNPACK_FLAT_FACTOR * flat +
           UNPACK_NODE_BYTES * (uint64_t)unpacker.header.node_count +
           UNPACK_FUNCTION_BYTES * (uint64_t)unpacker.header.function_count;
}

static enum err_code map_packed(int fd, struct mapped_file *ret_file, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "packed symbol table");
    if (status.st_size <= 0)
        return err_set(err, ERR_INVALID, "the packed symbol table is empty");
    return mapped_file_open(fd, (size_t)status.st_size, ret_file, err);
}

uint64_t symbol_unpack_fd_bytes(int packed_fd)
{
    mapped_file_auto file = {0};
    struct err ignored;
    return map_packed(packed_fd, &file, &ignored) ? 0 : symbol_unpack_bytes(file.bytes);
}

enum err_code symbol_unpack_fd(int packed_fd, struct buf *output, struct err *err)
{
    mapped_file_auto file = {0};
    enum err_code code = map_packed(packed_fd, &file, err);
    if (code)
        return code;
    code = symbol_unpack(file.bytes, output, err);
    return mapped_file_check(&file, err) ? err->code : code;
}
