#include "tests/unit/test.h"

#include "debuginfod/demangle.h"
#include "lib/base/buf.h"

static void assert_name(const char *linkage_name, enum demangle_names names, const char *expected)
{
    buf_auto output;
    buf_init(&output, 16 << 10);
    demangle_name(&names, span_text(linkage_name), &output);
    if (!span_equal_text(buf_span(&output), expected))
        fail_msg("%s: %.*s", linkage_name, SPAN_PRINT(buf_span(&output)));
}

static void names_of_cpp_and_rust_are_demangled(void **state)
{
    (void)state;
    assert_name("_ZN3FooC4Ev", DEMANGLE_ANY, "Foo::Foo()");
    assert_name("_ZNSt6vectorIiSaIiEE9push_backEOi", DEMANGLE_ANY,
                "std::vector<int, std::allocator<int> >::push_back(int&&)");
    assert_name("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", DEMANGLE_ANY,
                "core::fmt::Write::write_fmt");
    assert_name("_RNvC6_123foo3bar", DEMANGLE_ANY, "123foo::bar");
}

static void compiler_suffixes_are_removed(void **state)
{
    (void)state;
    assert_name("_Z3fooi.cold", DEMANGLE_ANY, "foo(int)");
    assert_name("_Z3fooi.constprop.0.isra.1.part.2", DEMANGLE_ANY, "foo(int)");
    assert_name("_Z3fooi.llvm.123456789", DEMANGLE_ANY, "foo(int)");
    assert_name("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.42", DEMANGLE_ANY,
                "core::fmt::Write::write_fmt");
    assert_name("read.part.0", DEMANGLE_ANY, "read");
    assert_name("read.cold", DEMANGLE_ANY, "read");
    assert_name("memcpy@@GLIBC_2.14", DEMANGLE_ANY, "memcpy");
    assert_name("memcpy@GLIBC_2.2.5", DEMANGLE_ANY, "memcpy");
}

static void other_names_stay(void **state)
{
    (void)state;
    assert_name("main", DEMANGLE_ANY, "");
    assert_name("camlStdlib.List.map", DEMANGLE_ANY, "");
    assert_name("_ZNot_mangled_at_all", DEMANGLE_ANY, "");
    assert_name("_start", DEMANGLE_ANY, "");
    assert_name("x.1", DEMANGLE_ANY, "");
    assert_name("", DEMANGLE_ANY, "");
    assert_name("@", DEMANGLE_ANY, "");
    assert_name(".cold", DEMANGLE_ANY, "");
    assert_name("main.cold", DEMANGLE_GO, "");
    assert_name("main.(*T).part", DEMANGLE_GO, "");
}

static void hostile_names_take_bounded_time(void **state)
{
    (void)state;
    enum demangle_names names = DEMANGLE_ANY;
    buf_auto name, output;
    buf_init(&name, 64 << 10);
    buf_init(&output, 16 << 10);
    buf_append_text(&name, "_Z1f");
    for (int i = 0; i < 12000; i++)
        buf_append_byte(&name, 'P');
    buf_append_text(&name, "i");
    demangle_name(&names, buf_span(&name), &output); /* deeper than libiberty goes */
    assert_true(output.size <= 16 << 10);
    buf_clear(&output);
    for (int i = 0; i < 12000; i++)
        buf_append_byte(&name, 'P');
    demangle_name(&names, buf_span(&name), &output); /* longer than the limit */
    assert_int_equal(output.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_cpp_and_rust_are_demangled),
        cmocka_unit_test(compiler_suffixes_are_removed),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(hostile_names_take_bounded_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
