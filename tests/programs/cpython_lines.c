/*
 * cpython_lines: the source lines of positions in code of Python, for
 * tests/integration/agent/test_cpython_lines.py. Reads lines "FORM FIRST_LINE -TABLE
 * POSITION…" and writes for each a line with the source lines of the positions. FORM: a number of
 * enum cpython_line_form. TABLE: hexadecimal; the "-" makes an empty table a word, too.
 */
#include "agent/interpreter/cpython_lines.h"

#include <stdio.h>
#include <stdlib.h>

static struct span read_hex(char *text)
{
    size_t size = 0;
    for (const char *at = text; at[0] && at[1]; at += 2) {
        const char pair[] = {at[0], at[1], 0};
        text[size++] = (char)strtoul(pair, NULL, 16);
    }
    return span_of(text, size);
}

int main(void)
{
    char *line = NULL, *rest;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        const enum cpython_line_form form = (enum cpython_line_form)strtoul(line, &rest, 10);
        const uint32_t first_line = (uint32_t)strtoul(rest, &rest, 10);
        char *places, *table = strtok_r(rest, " \n", &places);
        if (!table)
            return 1;
        const struct span bytes = read_hex(table[0] == '-' ? table + 1 : table);
        for (char *word = strtok_r(NULL, " \n", &places); word;
             word = strtok_r(NULL, " \n", &places))
            printf("%u ", cpython_lines_find(form, bytes, first_line, strtoll(word, NULL, 10)));
        printf("\n");
    }
    free(line);
    return 0;
}
