#include "agent/interpreter/cpython_text.h"

#include "agent/process/process_memory.h"

enum {
    LENGTH_OFFSET = 16,    /* PyASCIIObject.length */
    STATE_OFFSET = 32,     /* PyASCIIObject.state */
    CHARACTERS_MAX = 1000, /* 4 bytes each in UTF-8: less than CPYTHON_TEXT_MAX_BYTES */
    REPLACEMENT = 0xFFFD,
};

/* The state begins with the bits `interned`: 2 up to 3.13, 16 from 3.14 on. The 3 bits `kind`
 * follow them. In 3.14 the bits that were `kind` before are 0, which is no valid kind. */
bool cpython_text_form(uint32_t state, struct cpython_text_form *ret_form)
{
    uint32_t bits = state >> 2;
    if ((bits & 7) == 0)
        bits = state >> 16;
    const uint32_t bytes = bits & 7;
    const bool is_compact = bits >> 3 & 1;
    if ((bytes != 1 && bytes != 2 && bytes != 4) || !is_compact)
        return false;
    *ret_form =
        (struct cpython_text_form){.character_bytes = (uint8_t)bytes, .is_ascii = bits >> 4 & 1};
    return true;
}

static void append_character(struct buf *text, uint32_t character)
{
    if (character > 0x10FFFF || (character >= 0xD800 && character < 0xE000))
        character = REPLACEMENT;
    if (character < 0x80) {
        buf_append_byte(text, (uint8_t)character);
        return;
    }
    const uint32_t more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    buf_append_byte(text, (uint8_t)(0xFF00 >> (more + 1) | character >> (6 * more)));
    for (uint32_t i = more; i-- > 0;)
        buf_append_byte(text, (uint8_t)(0x80 | (character >> (6 * i) & 63)));
}

void cpython_text_decode(struct span characters, uint32_t character_bytes, struct buf *text)
{
    for (size_t at = 0; at + character_bytes <= characters.size; at += character_bytes) {
        uint32_t character = 0;
        memcpy(&character, characters.data + at, character_bytes);
        append_character(text, character);
    }
}

bool cpython_text_read(uint32_t process_id, uint64_t address, uint16_t ascii_bytes,
                       uint16_t unicode_bytes, struct buf *text)
{
    uint8_t head[CPYTHON_TEXT_HEAD_BYTES], characters[4 * CHARACTERS_MAX];
    struct cpython_text_form form;
    uint64_t length;
    uint32_t state;
    if (!process_memory_read(process_id, address, head, sizeof(head)))
        return false;
    memcpy(&length, head + LENGTH_OFFSET, sizeof(length));
    memcpy(&state, head + STATE_OFFSET, sizeof(state));
    if (!cpython_text_form(state, &form))
        return false;
    const size_t count = length < CHARACTERS_MAX ? (size_t)length : CHARACTERS_MAX;
    const size_t size = count * form.character_bytes;
    if (!process_memory_read(process_id, address + (form.is_ascii ? ascii_bytes : unicode_bytes),
                             characters, size))
        return false;
    cpython_text_decode(span_of(characters, size), form.character_bytes, text);
    return !buf_failed(text);
}
