/*
 * parquet_thrift: writes the metadata of Parquet files in Thrift's compact protocol.
 *
 * Source: github.com/apache/thrift, doc/specs/thrift-compact-protocol.md. A field is one byte with
 * its distance from the previous field and its type, then the value: whole numbers as zigzag
 * varints, texts and lists preceded by their size, structs terminated by a zero byte. Private to
 * parquet*.c.
 */
#ifndef LIB_IO_PARQUET_THRIFT_H
#define LIB_IO_PARQUET_THRIFT_H

#include "lib/base/span.h"

struct buf;

enum { THRIFT_DEPTH_MAX = 8 };

struct thrift {
    struct buf *bytes;
    int16_t last[THRIFT_DEPTH_MAX]; /* last field of each open struct */
    uint32_t depth;
};

/* Begins the top-level struct. */
void thrift_init(struct thrift *thrift, struct buf *bytes);
void thrift_bool(struct thrift *thrift, int16_t field, bool value);
void thrift_i8(struct thrift *thrift, int16_t field, int8_t value);
void thrift_i32(struct thrift *thrift, int16_t field, int32_t value);
void thrift_i64(struct thrift *thrift, int16_t field, int64_t value);
void thrift_text(struct thrift *thrift, int16_t field, struct span text);
void thrift_begin(struct thrift *thrift, int16_t field); /* a struct */
/* ends any struct, including the top-level one */
void thrift_end(struct thrift *thrift);

enum thrift_kind { THRIFT_I32 = 5, THRIFT_TEXT = 8, THRIFT_STRUCT = 12 };
/* Begins a list; count elements follow, each by thrift_list_i32, thrift_list_text, or, for a
 * struct, thrift_element, its fields and thrift_end. */
void thrift_list(struct thrift *thrift, int16_t field, enum thrift_kind kind, uint32_t count);
void thrift_element(struct thrift *thrift);
void thrift_list_i32(struct thrift *thrift, int32_t value);
void thrift_list_text(struct thrift *thrift, struct span text);

void thrift_append_varint(struct buf *bytes, uint64_t number);

#endif
