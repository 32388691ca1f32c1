#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/symbols/symbol_name_format.h"
#include "lib/symbols/symbol_names.h"

static void assert_name(const char *full, const char *linkage, enum symbol_name_format_mode mode,
                        const char *expected)
{
    const struct symbol_name name = {.full = span_text(full), .linkage = span_text(linkage)};
    buf_auto output;
    buf_init(&output, 1 << 16);
    buf_append_text(&output, "before ");
    symbol_name_format_append(&name, mode, &output);
    const struct span actual = span_of(output.data + 7, output.size - 7);
    if (!span_equal_text(actual, expected))
        fail_msg("%s\nis      %.*s\nand not %s", full, SPAN_PRINT(actual), expected);
}

static void cuts_cxx_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"f(int)", "f"},
        {"std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector::push_back"},
        {"void ns::g<int>(int)", "ns::g"},
        {"std::map<int, (x)(3)>::at(int const&) const", "std::map::at"},
        {"std::ostream& std::operator<< <char>(std::ostream&, char)", "std::operator<<"},
        {"bool operator< <int>(A<int> const&, A<int> const&)", "operator<"},
        {"A::operator()(int) const", "A::operator()"},
        {"A<int>::operator->() const", "A::operator->"},
        {"A::operator[](unsigned long)", "A::operator[]"},
        {"A::operator<=>(A const&) const", "A::operator<=>"},
        {"operator new[](unsigned long)", "operator new[]"},
        {"operator delete(void*)", "operator delete"},
        {"A::operator unsigned int() const", "A::operator unsigned int"},
        {"A::operator std::vector<int>() const", "A::operator std::vector"},
        {"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
        {"void (anonymous namespace)::f<int>(int)", "(anonymous namespace)::f"},
        {"f(int)::{lambda(int, char)#1}::operator()(int, char) const", "f::{lambda#1}::operator()"},
        {"A::f(int) const::{lambda(auto:1)#2}::operator()<int>(int) const",
         "A::f::{lambda#2}::operator()"},
        {"A::f() const &", "A::f"},
        {"f(int) [clone .cold]", "f"},
        {"f[abi:cxx11](int)", "f"},
        {"virtual thunk to A<int>::f(int)", "virtual thunk to A::f"},
        {"non-virtual thunk to A::~A()", "non-virtual thunk to A::~A"},
        {"decltype (g(declval<int>())) ns::f<int>(int)", "ns::f"},
        {"std::enable_if<((3)>(2)), int>::type f<A, &A::g>(A)", "f"},
        {"A<(B)0, &(f(int)->x)>::g()", "A::g"},
        {"operators::f()", "operators::f"},
        {"A::cooperator(int)", "A::cooperator"},
        {"A<int", "A"},
        {"f(int", "f"},
        {"(", "("},
        {"<", "<"},
        {">>>", ">>>"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_name(names[i][0], "_Zx", SYMBOL_NAME_FORMAT_SIMPLE, names[i][1]);
        assert_name(names[i][0], "_Zx", SYMBOL_NAME_FORMAT_FULL, names[i][0]);
        assert_name(names[i][0], "_Zx", SYMBOL_NAME_FORMAT_NONE, "_Zx");
    }
}

static void cuts_rust_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place"},
        {"alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push"},
        {"<alloc::vec::Vec<T,A> as core::ops::Drop>::drop",
         "<alloc::vec::Vec as core::ops::Drop>::drop"},
        {"<<A as B<C>>::D as E>::f", "<<A as B>::D as E>::f"},
        {"<&T as core::fmt::Debug>::fmt", "<&T as core::fmt::Debug>::fmt"},
        {"<F as core::ops::Fn<(A,)>>::call::<fn(i32) -> u8>", "<F as core::ops::Fn>::call"},
        {"std::thread::spawn::<app::main::{closure#0}, ()>", "std::thread::spawn"},
        {"app::main::{{closure}}", "app::main::{{closure}}"},
        {"app::<impl app::Trait<X> for app::Type>::go", "app::<impl app::Trait for app::Type>::go"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_name(names[i][0], "_Rx", SYMBOL_NAME_FORMAT_SIMPLE, names[i][1]);
}

static void leaves_names_that_were_not_mangled(void **state)
{
    (void)state;
    assert_name("runtime.(*mcache).refill", "runtime.(*mcache).refill", SYMBOL_NAME_FORMAT_SIMPLE,
                "runtime.(*mcache).refill");
    assert_name("f", "f.constprop.0", SYMBOL_NAME_FORMAT_SIMPLE, "f");
    assert_name("f", "f.constprop.0", SYMBOL_NAME_FORMAT_NONE, "f.constprop.0");
    assert_name("main.F[go.shape.<-chan int]", "main.F[go.shape.<-chan int]",
                SYMBOL_NAME_FORMAT_SIMPLE, "main.F[go.shape.<-chan int]");
    assert_name("", "", SYMBOL_NAME_FORMAT_SIMPLE, "");
}

static void cuts_template_arguments_of_plain_names(void **state)
{
    (void)state;
    assert_name("write<int, A<B> >", "write<int, A<B> >", SYMBOL_NAME_FORMAT_SIMPLE, "write");
    assert_name("operator<", "operator<", SYMBOL_NAME_FORMAT_SIMPLE, "operator<");
    assert_name("operator()", "operator()", SYMBOL_NAME_FORMAT_SIMPLE, "operator()");
}

static void knows_its_modes(void **state)
{
    (void)state;
    enum symbol_name_format_mode mode = SYMBOL_NAME_FORMAT_FULL;
    assert_true(symbol_name_format_parse(SPAN_LITERAL("simple"), &mode));
    assert_int_equal(mode, SYMBOL_NAME_FORMAT_SIMPLE);
    assert_false(symbol_name_format_parse(SPAN_LITERAL("Simple"), &mode));
    assert_false(symbol_name_format_parse(SPAN_LITERAL(""), &mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_cxx_names),
        cmocka_unit_test(cuts_rust_names),
        cmocka_unit_test(leaves_names_that_were_not_mangled),
        cmocka_unit_test(cuts_template_arguments_of_plain_names),
        cmocka_unit_test(knows_its_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
