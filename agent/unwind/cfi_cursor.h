/*
 * cfi_cursor: reads numbers of call frame information, little-endian, from borrowed bytes.
 *
 * A read past the end returns 0, moves to the end and sets has_failed, so that a series of reads
 * needs one check. Threads: any.
 */
#ifndef AGENT_UNWIND_CFI_CURSOR_H
#define AGENT_UNWIND_CFI_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cfi_cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool has_failed;
};

static inline size_t cfi_cursor_left(const struct cfi_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline const uint8_t *cfi_cursor_skip(struct cfi_cursor *cursor, uint64_t size)
{
    if (size > cfi_cursor_left(cursor)) {
        cursor->at = cursor->end;
        cursor->has_failed = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += size;
    return bytes;
}

#define CFI_CURSOR_NUMBER(type, name)                                                              \
    static inline type name(struct cfi_cursor *cursor)                                             \
    {                                                                                              \
        type number = 0;                                                                           \
        const uint8_t *bytes = cfi_cursor_skip(cursor, sizeof number);                             \
        if (bytes)                                                                                 \
            memcpy(&number, bytes, sizeof number);                                                 \
        return number;                                                                             \
    }
CFI_CURSOR_NUMBER(uint8_t, cfi_cursor_u8)
CFI_CURSOR_NUMBER(uint16_t, cfi_cursor_u16)
CFI_CURSOR_NUMBER(uint32_t, cfi_cursor_u32)
CFI_CURSOR_NUMBER(uint64_t, cfi_cursor_u64)
#undef CFI_CURSOR_NUMBER

/* LEB128; bits after the 64th are dropped. */
static inline uint64_t cfi_cursor_uleb(struct cfi_cursor *cursor)
{
    uint64_t number = 0;
    for (unsigned shift = 0; cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        if (shift < 64)
            number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
    cursor->has_failed = true;
    return 0;
}

static inline int64_t cfi_cursor_sleb(struct cfi_cursor *cursor)
{
    uint64_t number = 0;
    for (unsigned shift = 0; cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        if (shift < 64)
            number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80)
            continue;
        if (byte & 0x40 && shift + 7 < 64)
            number |= ~(uint64_t)0 << (shift + 7);
        return (int64_t)number;
    }
    cursor->has_failed = true;
    return 0;
}

/* Pointer encodings of .eh_frame: the format in bits 0 to 3, the base in bits 4 to 6. */
enum {
    CFI_ENCODING_ABSOLUTE = 0x00,
    CFI_ENCODING_PC_RELATIVE = 0x10,
    CFI_ENCODING_DATA_RELATIVE = 0x30,
    CFI_ENCODING_OMITTED = 0xff,
};

/* Reads a pointer in the format of encoding, without its base; false: unknown format. */
static inline bool cfi_cursor_pointer(struct cfi_cursor *cursor, uint8_t encoding, uint64_t *ret)
{
    switch (encoding & 0x0f) {
    case 0x00: /* absptr */
    case 0x04: /* udata8 */
    case 0x0c: /* sdata8 */
        *ret = cfi_cursor_u64(cursor);
        return true;
    case 0x01:
        *ret = cfi_cursor_uleb(cursor);
        return true;
    case 0x02:
        *ret = cfi_cursor_u16(cursor);
        return true;
    case 0x03:
        *ret = cfi_cursor_u32(cursor);
        return true;
    case 0x09:
        *ret = (uint64_t)cfi_cursor_sleb(cursor);
        return true;
    case 0x0a:
        *ret = (uint64_t)(int16_t)cfi_cursor_u16(cursor);
        return true;
    case 0x0b:
        *ret = (uint64_t)(int32_t)cfi_cursor_u32(cursor);
        return true;
    default:
        return false;
    }
}

#endif
