/*
 * write_parquet: writes a Parquet file with tiny pages, so that tests can compare the values that
 * other readers find in it with those that were written.
 *
 *   write_parquet FILE PAGE_BYTES DICTIONARY_BYTES ROWS
 * Row i has number = i, texts = i % 7 times "text <i % 11>" and, in each 13th row, 100 more "long
 * <k>", and maybe = "maybe <i % 5>", null where i % 3 is 0.
 */
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/parquet.h"

#include <stdio.h>
#include <stdlib.h>

static const struct parquet_column columns[] = {
    {SPAN_LITERAL("number"), PARQUET_ONE, {{"", PARQUET_I64}}, 1},
    {SPAN_LITERAL("texts"), PARQUET_LIST, {{"", PARQUET_TEXT}}, 1},
    {SPAN_LITERAL("maybe"), PARQUET_OPTIONAL, {{"", PARQUET_TEXT}}, 1},
};

static enum err_code append(void *context, struct span bytes, struct err *err)
{
    FILE *file = context;
    return fwrite(bytes.data, 1, bytes.size, file) == bytes.size
               ? ERR_NONE
               : err_set_errno(err, ERR_IO, "writing");
}

static uint32_t add_text(struct parquet_writer *writer, uint32_t column, const char *word,
                         uint32_t number)
{
    char text[64];
    snprintf(text, sizeof(text), "%s %u", word, number);
    return parquet_add(writer, column, &(struct parquet_value){.text = span_text(text)});
}

static enum err_code add_row(struct parquet_writer *writer, uint32_t i, struct err *err)
{
    uint32_t texts[128], count = 0;
    const uint32_t number = parquet_add(writer, 0, &(struct parquet_value){.number = i});
    const uint32_t maybe = i % 3 ? add_text(writer, 2, "maybe", i % 5) : 0;
    while (count < i % 7)
        texts[count++] = add_text(writer, 1, "text", i % 11);
    for (uint32_t k = 0; i % 13 == 0 && k < 100; k++)
        texts[count++] = add_text(writer, 1, "long", k);
    parquet_append(writer, 0, &number, 1);
    parquet_append(writer, 1, texts, count);
    parquet_append(writer, 2, &maybe, i % 3 != 0);
    return parquet_end_row(writer, err);
}

int main(int argc, char **argv)
{
    FILE *file = argc == 5 ? fopen(argv[1], "wb") : NULL;
    if (!file) {
        fprintf(stderr, "write_parquet FILE PAGE_BYTES DICTIONARY_BYTES ROWS\n");
        return 2;
    }
    const struct parquet_limits limits = {.page_bytes = strtoull(argv[2], NULL, 10),
                                          .dictionary_bytes = strtoull(argv[3], NULL, 10)};
    const uint32_t rows = (uint32_t)strtoul(argv[4], NULL, 10);
    struct parquet_writer *writer = parquet_writer_create(
        columns, 3, limits, (struct parquet_sink){.append = append, .context = file});
    struct err err = {0};
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < rows && !code; i++)
        code = add_row(writer, i, &err);
    if (!code)
        code = parquet_finish(writer, NULL, 0, &err);
    parquet_writer_destroy(writer);
    if (fclose(file) != 0 || code) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    return 0;
}
