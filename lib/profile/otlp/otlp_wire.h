/*
 * otlp_wire: the field numbers of the messages (opentelemetry/proto/profiles/v1development,
 * common/v1, resource/v1). Private to lib/profile/otlp/.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_WIRE_H
#define LIB_PROFILE_OTLP_OTLP_WIRE_H

#include "lib/profile/protobuf.h"

enum {
    REQUEST_RESOURCE_PROFILES = 1,
    REQUEST_DICTIONARY = 2,

    RESOURCE_PROFILES_RESOURCE = 1,
    RESOURCE_PROFILES_SCOPE_PROFILES = 2,

    RESOURCE_ATTRIBUTES = 1,

    SCOPE_PROFILES_SCOPE = 1,
    SCOPE_PROFILES_PROFILES = 2,

    SCOPE_NAME = 1,
    SCOPE_ATTRIBUTES = 3,

    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    KEY_VALUE_KEY_STRINDEX = 3,

    ANY_STRING = 1,
    ANY_BOOL = 2,
    ANY_INT = 3,
    ANY_DOUBLE = 4,
    ANY_ARRAY = 5,
    ANY_KVLIST = 6,
    ANY_BYTES = 7,
    ANY_STRING_STRINDEX = 8,

    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLES = 2,
    PROFILE_TIME = 3,
    PROFILE_DURATION = 4,
    PROFILE_PERIOD_TYPE = 5,
    PROFILE_PERIOD = 6,
    PROFILE_1_8_ID = 8,      /* 1.8: bytes; since 1.9 the number of dropped attributes */
    PROFILE_1_8_DROPPED = 9, /* 1.8: a number; since 1.9 the format of the payload */
    PROFILE_ATTRIBUTES = 11, /* 1.8: the payload */
    PROFILE_1_8_ATTRIBUTES = 12,

    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,
    VALUE_TYPE_TEMPORALITY = 3, /* only 1.8 */
    TEMPORALITY_DELTA = 1,
    TEMPORALITY_CUMULATIVE = 2,

    SAMPLE_FIELD_STACK = 1, /* these three since 1.10; otlp_count.c has both layouts */
    SAMPLE_FIELD_ATTRIBUTES = 2,
    SAMPLE_FIELD_VALUES = 4,
    SAMPLE_FIELD_COUNT = 6,

    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_OFFSET = 3,
    MAPPING_FILENAME = 4,
    MAPPING_ATTRIBUTES = 5,

    STACK_LOCATIONS = 1,

    LOCATION_MAPPING = 1,
    LOCATION_ADDRESS = 2,
    LOCATION_LINES = 3,
    LOCATION_ATTRIBUTES = 4,

    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    LINE_COLUMN = 3,

    FUNCTION_NAME = 1,
    FUNCTION_SYSTEM_NAME = 2,
    FUNCTION_FILENAME = 3,
    FUNCTION_START_LINE = 4,

    LINK_TRACE_ID = 1,
    LINK_SPAN_ID = 2,

    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    ATTRIBUTE_UNIT = 3
};

/* The fields of the dictionary. */
enum otlp_table {
    TABLE_MAPPING = 1,
    TABLE_LOCATION = 2,
    TABLE_FUNCTION = 3,
    TABLE_LINK = 4,
    TABLE_STRING = 5,
    TABLE_ATTRIBUTE = 6,
    TABLE_STACK = 7,
    TABLE_COUNT = 8
};

#endif
