#include "agent/interpreter/ruby_text.h"

#include "agent/process/process_memory.h"
#include "lib/base/span_utf8.h"

enum {
    TYPE_MASK = 0x1F, /* of an object's first word */
    TYPE_STRING = 5,
    TYPE_ARRAY = 7,
    FLAG_USER_1 = 1 << 13, /* of a string: not embedded; of an array: embedded */
    EMBEDDED_LENGTH_SHIFT = 14,
    EMBEDDED_LENGTH_MASK = 0x1F,
    LENGTH_OFFSET = 16,
    TEXT_ADDRESS_OFFSET = 24,
    ARRAY_ADDRESS_OFFSET = 32,
};

static uint64_t word_at(const uint8_t *object, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, object + offset, sizeof(word));
    return word;
}

bool ruby_text_find(const struct ruby_layout *layout, const uint8_t object[RUBY_OBJECT_BYTES],
                    struct ruby_text_location *ret_location)
{
    const uint64_t flags = word_at(object, 0);
    const bool is_embedded = !(flags & FLAG_USER_1);
    if ((flags & TYPE_MASK) != TYPE_STRING)
        return false;
    const uint64_t bytes = is_embedded && !layout->has_long_length
                               ? flags >> EMBEDDED_LENGTH_SHIFT & EMBEDDED_LENGTH_MASK
                               : word_at(object, LENGTH_OFFSET);
    *ret_location = (struct ruby_text_location){
        .address = is_embedded ? 0 : word_at(object, TEXT_ADDRESS_OFFSET),
        .offset = layout->embedded_text,
        .bytes = bytes < RUBY_TEXT_MAX_BYTES ? (uint32_t)bytes : RUBY_TEXT_MAX_BYTES};
    return is_embedded || ret_location->address;
}

void ruby_text_clean(uint8_t *bytes, size_t size)
{
    if (span_is_utf8(span_of(bytes, size)))
        return;
    for (size_t i = 0; i < size; i++)
        bytes[i] = bytes[i] < 0x80 ? bytes[i] : '?';
}

bool ruby_text_read(uint32_t process_id, const struct ruby_layout *layout, uint64_t address,
                    struct buf *text)
{
    uint8_t object[RUBY_OBJECT_BYTES], bytes[RUBY_TEXT_MAX_BYTES];
    struct ruby_text_location location;
    if (!process_memory_read(process_id, address, object, sizeof(object)) ||
        !ruby_text_find(layout, object, &location) ||
        !process_memory_read(process_id,
                             location.address ? location.address : address + location.offset, bytes,
                             location.bytes))
        return false;
    ruby_text_clean(bytes, location.bytes);
    buf_append(text, bytes, location.bytes);
    return !buf_failed(text);
}

bool ruby_text_read_path(uint32_t process_id, const struct ruby_layout *layout, uint64_t address,
                         struct buf *text)
{
    uint8_t object[RUBY_OBJECT_BYTES];
    if (!process_memory_read(process_id, address, object, sizeof(object)))
        return false;
    const uint64_t flags = word_at(object, 0);
    if ((flags & TYPE_MASK) == TYPE_ARRAY) {
        if (flags & FLAG_USER_1)
            address = word_at(object, layout->embedded_array);
        else if (!process_memory_word(process_id, word_at(object, ARRAY_ADDRESS_OFFSET), &address))
            return false;
    }
    return ruby_text_read(process_id, layout, address, text);
}
