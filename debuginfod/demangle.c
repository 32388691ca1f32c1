#include "debuginfod/demangle.h"

#include "lib/base/buf.h"

#include <libiberty/demangle.h>
#include <stdbool.h>

/* Words that compilers append to a name; a number may follow each. */
static const char *const clone_words[] = {
    "cold",       "constprop", "isra",     "part",    "llvm",        "lto_priv",
    "localalias", "clone",     "unlikely", "__uniq",  "simdclone",   "resolver",
    "warm",       "split",     "cfi",      "cfi_jt",  "specialized", "outlined",
    "destroy",    "actor",     "resume",   "cleanup", "ifunc",
};

static bool is_clone_word(struct span word)
{
    for (size_t i = 0; i < sizeof(clone_words) / sizeof(clone_words[0]); i++) {
        if (span_equal_text(word, clone_words[i]))
            return true;
    }
    return false;
}

static bool is_number(struct span word)
{
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] < '0' || word.data[i] > '9')
            return false;
    }
    return word.size > 0;
}

static size_t last_dot(struct span name)
{
    size_t at = name.size;
    while (at > 0 && name.data[at - 1] != '.')
        at--;
    return at; /* after the dot; 0: none */
}

/* Names of Go and Ada contain dots too, so only known suffixes are removed, from the end. A
 * number is removed with the word before it, and on its own only from a mangled name. */
struct span demangle_strip(struct span name)
{
    const uint8_t *at_sign = name.size > 1 ? memchr(name.data + 1, '@', name.size - 1) : NULL;
    if (at_sign)
        name.size = (size_t)(at_sign - name.data);
    struct span rest = name;
    bool is_mangled = span_starts_with(name, "_Z") || span_starts_with(name, "_R");
    for (;;) {
        size_t behind = last_dot(rest);
        if (behind < 2)
            return name;
        struct span word = span_of(rest.data + behind, rest.size - behind);
        rest.size = behind - 1;
        if (is_clone_word(word) || (is_mangled && is_number(word)))
            name = rest;
        else if (!is_number(word))
            return name;
    }
}

static void append_chunk(const char *text, size_t size, void *output)
{
    buf_append(output, text, size);
}

/* Whether the name is mangled like C++ with a hash of 16 digits as its last part. The demangler
 * would detect that only at the end, after a seventh of the time of demangling a C++ name. */
static bool is_old_rust(struct span name)
{
    static const size_t hash_bytes = sizeof("17h0123456789abcdefE") - 1;
    return span_starts_with(name, "_ZN") && name.size > hash_bytes &&
           memcmp(name.data + name.size - hash_bytes, "17h", 3) == 0;
}

void demangle_name(void *context, struct span linkage_name, struct buf *output)
{
    const enum demangle_names *names = context;
    bool is_mangled = span_starts_with(linkage_name, "_Z") || span_starts_with(linkage_name, "_R");
    bool is_go = names && *names == DEMANGLE_GO;
    struct span name = is_mangled || !is_go ? demangle_strip(linkage_name) : linkage_name;
    /* Longer names stay mangled. */
    if (linkage_name.size > DEMANGLE_MAX_INPUT_BYTES)
        return;
    char text[DEMANGLE_MAX_INPUT_BYTES + 1];
    memcpy(text, name.data, name.size);
    text[name.size] = 0;
    int is_known = 0;
    if (span_starts_with(name, "_R") || is_old_rust(name))
        is_known = rust_demangle_callback(text, DMGL_NO_OPTS, append_chunk, output);
    if (!is_known) {
        buf_clear(output);
        if (span_starts_with(name, "_Z"))
            is_known =
                cplus_demangle_v3_callback(text, DMGL_PARAMS | DMGL_ANSI, append_chunk, output);
    }
    if (!is_known) {
        buf_clear(output);
        if (name.size != linkage_name.size)
            buf_append_span(output, name);
    }
}
