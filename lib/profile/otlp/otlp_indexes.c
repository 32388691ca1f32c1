#include "lib/profile/otlp/otlp_indexes.h"

#include "lib/profile/protobuf.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

uint32_t *otlp_indexes_read_portable(struct span bytes, uint32_t *entry, uint64_t limit)
{
    const uint8_t *at = bytes.data, *end = bytes.size ? bytes.data + bytes.size : bytes.data;
    bool is_wrong = false;
    while (at < end) {
        uint64_t word;
        if (end - at >= 8) {
            memcpy(&word, at, sizeof(word));
            const uint64_t continued = word & UINT64_C(0x8080808080808080);
            /* No number here has three bytes, so eight bytes contain at least four numbers. */
            if (!(continued & continued << 8)) {
                for (unsigned i = 0; i < 4; i++) {
                    const uint64_t has_second = word >> 7 & 1;
                    const uint64_t second = word >> 1 & 0x3f80 & (0 - has_second);
                    entry[i] = (uint32_t)((word & 0x7f) | second);
                    is_wrong |= entry[i] >= limit;
                    word >>= 8 + 8 * has_second;
                    at += 1 + has_second;
                }
                entry += 4;
                continue;
            }
        }
        at = protobuf_read_varint(at, end, &word);
        if (!at)
            return NULL;
        is_wrong |= word >= limit;
        *entry++ = (uint32_t)word;
    }
    return is_wrong ? NULL : entry;
}

/* Fills the entry of mask, in which bit i is set if the number in byte i continues in the next
 * byte. */
static void fill_entry(struct otlp_indexes *table, unsigned mask)
{
    uint8_t *shuffle = table->shuffles[mask];
    unsigned at = 0, count = 0;
    memset(shuffle, 0x80, sizeof(table->shuffles[mask]));
    while (at < 8) {
        const bool has_second = mask >> at & 1;
        if (has_second && (at + 1 == 8 || mask >> (at + 1) & 1))
            break; /* the number extends beyond these eight bytes, or has a third byte */
        shuffle[2 * count] = (uint8_t)at;
        if (has_second)
            shuffle[2 * count + 1] = (uint8_t)(at + 1);
        at += has_second ? 2 : 1;
        count++;
    }
    table->counts[mask] = (uint8_t)count;
    table->sizes[mask] = (uint8_t)at;
}

void otlp_indexes_init(struct otlp_indexes *table)
{
    for (unsigned mask = 0; mask < 256; mask++)
        fill_entry(table, mask);
}

#ifdef __x86_64__
bool otlp_indexes_can(void)
{
    return __builtin_cpu_supports("sse4.1");
}

__attribute__((target("sse4.1"))) static bool is_any_past(__m128i greatest, uint64_t limit)
{
    uint16_t numbers[8];
    bool is_past = false;
    _mm_storeu_si128((__m128i *)numbers, greatest);
    for (unsigned i = 0; i < 8; i++)
        is_past |= numbers[i] && numbers[i] >= limit;
    return is_past;
}

__attribute__((target("sse4.1"))) uint32_t *otlp_indexes_read(const struct otlp_indexes *table,
                                                              struct span bytes, uint32_t *entry,
                                                              uint64_t limit)
{
    const uint8_t *at = bytes.data, *end = bytes.size ? bytes.data + bytes.size : bytes.data;
    const __m128i low = _mm_set1_epi16(0x7f), high = _mm_set1_epi16(0x3f80);
    __m128i greatest = _mm_setzero_si128();
    bool is_wrong = limit == 0 && bytes.size;
    while (end - at >= 8) {
        const __m128i word = _mm_loadl_epi64((const __m128i *)(const void *)at);
        const unsigned mask = (unsigned)_mm_movemask_epi8(word) & 0xff;
        const __m128i shuffle =
            _mm_loadu_si128((const __m128i *)(const void *)table->shuffles[mask]);
        const __m128i pairs = _mm_shuffle_epi8(word, shuffle);
        const __m128i numbers =
            _mm_or_si128(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 1), high));
        greatest = _mm_max_epu16(greatest, numbers);
        _mm_storeu_si128((__m128i *)(void *)entry, _mm_cvtepu16_epi32(numbers));
        _mm_storeu_si128((__m128i *)(void *)(entry + 4),
                         _mm_cvtepu16_epi32(_mm_srli_si128(numbers, 8)));
        entry += table->counts[mask];
        at += table->sizes[mask];
        if (table->counts[mask])
            continue;
        uint64_t number; /* three bytes or more */
        at = protobuf_read_varint(at, end, &number);
        if (!at)
            return NULL;
        is_wrong |= number >= limit;
        *entry++ = (uint32_t)number;
    }
    entry = otlp_indexes_read_portable(span_of(at, (size_t)(end - at)), entry, limit);
    return is_wrong || is_any_past(greatest, limit) ? NULL : entry;
}
#else
bool otlp_indexes_can(void)
{
    return false;
}

uint32_t *otlp_indexes_read(const struct otlp_indexes *table, struct span bytes, uint32_t *entry,
                            uint64_t limit)
{
    (void)table;
    return otlp_indexes_read_portable(bytes, entry, limit);
}
#endif
