/*
 * Assembles the table of what a writer collected and an encoder encoded: the header, the entries of
 * the sections with their CRCs, and the sections, each padded to SYMBOL_TABLE_ALIGNMENT.
 */
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer_internal.h"

struct output_section {
    enum symbol_table_section kind;
    struct span bytes;
};

static uint64_t aligned(uint64_t size)
{
    return (size + SYMBOL_TABLE_ALIGNMENT - 1) / SYMBOL_TABLE_ALIGNMENT * SYMBOL_TABLE_ALIGNMENT;
}

static void append_padded(struct buf *output, struct span bytes)
{
    static const uint8_t zeros[SYMBOL_TABLE_ALIGNMENT];
    buf_append_span(output, bytes);
    buf_append(output, zeros, (size_t)(aligned(bytes.size) - bytes.size));
}

static void segments_to_bytes(const struct symbol_table_writer *writer, struct buf *output)
{
    for (uint32_t i = 0; i < writer->segment_count; i++) {
        const struct symbol_segment *segment = &writer->segments[i];
        const struct symbol_table_segment bytes = {.offset = segment->offset,
                                                   .address = segment->address,
                                                   .file_bytes = segment->file_bytes,
                                                   .memory_bytes = segment->memory_bytes,
                                                   .alignment = segment->alignment,
                                                   .flags = segment->flags};
        buf_append(output, &bytes, sizeof(bytes));
    }
}

static uint32_t padded_crc(struct span bytes)
{
    static const uint8_t zeros[SYMBOL_TABLE_ALIGNMENT];
    return crc32c_extend(crc32c(bytes), span_of(zeros, (size_t)(aligned(bytes.size) - bytes.size)));
}

static struct symbol_table_header build_header(const struct symbol_encoder *encoder,
                                               const struct symbol_table_facts *facts)
{
    const struct symbol_table_writer *writer = encoder->writer;
    struct symbol_table_header header = {
        .magic = SYMBOL_TABLE_MAGIC,
        .version = SYMBOL_TABLE_VERSION,
        .first_address = encoder->first_address,
        .address_bytes = encoder->record_count ? encoder->end - encoder->first_address : 0,
        .record_count = encoder->record_count,
        .node_count = encoder->order_count,
        .function_count = writer->function_count,
        .file_count = writer->file_count,
        .segment_count = writer->segment_count,
        .id_kind = facts->id_kind,
        .id_bytes = facts->id_bytes <= SYMBOL_ID_MAX_BYTES ? facts->id_bytes : SYMBOL_ID_MAX_BYTES,
        .machine = facts->machine,
        .quality = facts->quality,
        .broken_units = facts->broken_units,
        .builder_version = facts->builder_version};
    memcpy(header.id, facts->id, header.id_bytes);
    return header;
}

static void append_table(const struct output_section *sections, uint32_t section_count,
                         struct symbol_table_header *header, struct buf *output)
{
    struct symbol_table_section_entry entries[SYMBOL_SECTION_END] = {0};
    const size_t entries_bytes = section_count * sizeof(entries[0]);
    uint64_t offset = aligned(sizeof(*header) + entries_bytes);
    for (uint32_t i = 0; i < section_count; i++) {
        entries[i] = (struct symbol_table_section_entry){.kind = sections[i].kind,
                                                         .crc = padded_crc(sections[i].bytes),
                                                         .offset = offset,
                                                         .bytes = sections[i].bytes.size};
        offset += aligned(sections[i].bytes.size);
    }
    buf_auto head;
    buf_init(&head, sizeof(*header) + sizeof(entries));
    header->section_count = section_count;
    header->table_bytes = offset;
    buf_append(&head, header, sizeof(*header));
    buf_append(&head, entries, entries_bytes);
    header->crc = padded_crc(buf_span(&head));
    memcpy(head.data, header, sizeof(*header));
    append_padded(output, buf_span(&head));
    for (uint32_t i = 0; i < section_count; i++)
        append_padded(output, sections[i].bytes);
}

static void append_sections(const struct symbol_encoder *encoder,
                            const struct symbol_table_facts *facts, struct buf *output)
{
    const struct symbol_table_writer *writer = encoder->writer;
    struct symbol_table_header header = build_header(encoder, facts);
    buf_auto segments;
    buf_init(&segments, SYMBOL_SEGMENT_MAX_COUNT * sizeof(struct symbol_table_segment));
    segments_to_bytes(writer, &segments);
    const struct output_section sections[] = {
        {SYMBOL_SECTION_SEGMENTS, buf_span(&segments)},
        {SYMBOL_SECTION_GROUP_ADDRESSES, buf_span(&encoder->group_addresses)},
        {SYMBOL_SECTION_GROUP_OFFSETS, buf_span(&encoder->group_offsets)},
        {SYMBOL_SECTION_RECORDS, buf_span(&encoder->records)},
        {SYMBOL_SECTION_NODES, buf_span(&encoder->node_bytes)},
        {SYMBOL_SECTION_NODE_EXCEPTIONS, buf_span(&encoder->node_exceptions)},
        {SYMBOL_SECTION_DECLARATIONS, buf_span(&encoder->declarations)},
        {SYMBOL_SECTION_FUNCTION_FRAMES, buf_span(&writer->names.index)},
        {SYMBOL_SECTION_FUNCTION_NAMES, buf_span(&writer->names.frames)},
        {SYMBOL_SECTION_FILE_FRAMES, buf_span(&writer->paths.index)},
        {SYMBOL_SECTION_FILE_NAMES, buf_span(&writer->paths.frames)}};
    append_table(sections, sizeof(sections) / sizeof(sections[0]), &header, output);
}

enum err_code symbol_encoder_write(const struct symbol_encoder *encoder,
                                   const struct symbol_table_facts *facts, struct buf *output,
                                   struct err *err)
{
    struct symbol_table_writer *writer = encoder->writer;
    symbol_strings_writer_finish(&writer->names);
    symbol_strings_writer_finish(&writer->paths);
    if (writer->names.has_failed || writer->paths.has_failed)
        return err_set(err, ERR_TOO_LARGE, "names of more than 4 GiB in one binary");
    append_sections(encoder, facts, output);
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "a symbol table of more than %zu bytes",
                       output->max_size);
    return ERR_NONE;
}

enum err_code symbol_table_writer_finish(struct symbol_table_writer *writer,
                                         const struct symbol_table_facts *facts, struct buf *output,
                                         struct err *err)
{
    struct symbol_encoder encoder;
    enum err_code code = symbol_encoder_run(&encoder, writer, err);
    if (!code && writer->failure.code) {
        *err = writer->failure;
        code = err->code;
    }
    if (!code)
        code = symbol_encoder_write(&encoder, facts, output, err);
    symbol_encoder_fini(&encoder);
    return code;
}
