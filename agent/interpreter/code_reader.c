#include "agent/interpreter/code_reader.h"

#include "agent/process/process_memory.h"
#include "lib/base/arena.h"

void code_reader_init(struct code_reader *reader, uint32_t process_id,
                      const struct code_quota *quota, size_t entry_bytes, uint32_t entry_max_bytes)
{
    *reader = (struct code_reader){
        .process_id = process_id, .first_process_id = process_id, .references = 1};
    code_cache_init(&reader->cache, quota, entry_bytes, entry_max_bytes);
}

void code_reader_ref(struct code_reader *reader)
{
    reader->references++;
}

bool code_reader_unref(struct code_reader *reader)
{
    if (--reader->references)
        return false;
    code_cache_fini(&reader->cache);
    return true;
}

const struct code_entry *code_reader_find(struct code_reader *reader, uint32_t process_id,
                                          const struct interpreted_frame *frame,
                                          code_reader_function *read, void *context)
{
    struct code_entry *entry = code_cache_find(&reader->cache, frame->code);
    if (entry && entry->check == frame->check)
        return entry;
    entry = code_cache_put(&reader->cache, frame->code);
    reader->process_id = process_id;
    if (!read(context, frame, entry)) {
        reader->process_id = reader->first_process_id;
        (void)read(context, frame, entry);
    }
    code_cache_count(&reader->cache);
    return entry;
}

uint64_t code_reader_word(const uint8_t *object, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, object + offset, sizeof(word));
    return word;
}

bool code_reader_is_same(const struct interpreter_layout *layout, const uint8_t *object,
                         uint32_t check)
{
    const uint8_t *start = object + layout->code_start;
    return interpreter_check(code_reader_word(start, layout->code_words[0]),
                             code_reader_word(start, layout->code_words[1]),
                             code_reader_word(start, layout->code_words[2])) == check;
}

struct span code_reader_keep_text(struct code_reader *reader, const struct buf *text)
{
    return span_of(arena_strndup(reader->cache.into, text->data, text->size), text->size);
}

struct span code_reader_table(struct code_reader *reader, uint64_t address, uint64_t size,
                              uint64_t max_bytes)
{
    if (size > max_bytes)
        size = max_bytes;
    uint8_t *bytes = arena_alloc_raw(reader->cache.into, size, 1);
    if (!address || !process_memory_read(reader->process_id, address, bytes, size))
        return (struct span){0};
    return span_of(bytes, size);
}
