#include "tests/unit/test.h"

#include "api/server/tcp_info.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static uint64_t subscriber(const char *text)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    bool is_v4 = strchr(text, ':') == NULL;
    address.ss_family = is_v4 ? AF_INET : AF_INET6;
    if (is_v4)
        assert_int_equal(inet_pton(AF_INET, text, &v4->sin_addr), 1);
    else
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    assert_true(tcp_info_site(tcp_info_subscriber(&address)) == tcp_info_site_of_text(text));
    return tcp_info_subscriber(&address);
}

static void counts_ipv6_by_its_first_64_bits(void **state)
{
    (void)state;
    assert_true(subscriber("2001:db8:1:2::1") == subscriber("2001:db8:1:2:ffff::9"));
    assert_true(subscriber("2001:db8:1:2::1") != subscriber("2001:db8:1:3::1"));
    assert_true(subscriber("2001:db8::1") != subscriber("2001:db9::1"));
}

static void a_site_is_the_first_48_bits_of_ipv6_or_an_ipv4_address(void **state)
{
    (void)state;
    const uint64_t site = tcp_info_site_of_text("2001:db8:1:2::1");
    assert_true(site == tcp_info_site_of_text("2001:db8:1:3::1"));
    assert_true(site != tcp_info_site_of_text("2001:db8:2:2::1"));
    assert_true(tcp_info_site_of_text("192.0.2.1") != tcp_info_site_of_text("192.0.2.2"));
    assert_true(tcp_info_site_of_text("192.0.2.1") == subscriber("::ffff:192.0.2.1"));
}

static void counts_ipv4_by_the_whole_address_in_either_form(void **state)
{
    (void)state;
    assert_true(subscriber("192.0.2.1") != subscriber("192.0.2.2"));
    assert_true(subscriber("192.0.2.1") != subscriber("1.2.0.192"));
    assert_true(subscriber("192.0.2.1") == subscriber("::ffff:192.0.2.1"));
}

static void distinguishes_the_address_families(void **state)
{
    (void)state;
    assert_true(subscriber("32.1.13.184") != subscriber("2001:db8::"));
    assert_true(subscriber("184.13.1.32") != subscriber("2001:db8::"));
    assert_true(subscriber("127.0.0.1") != subscriber("::1"));
}

static void has_no_number_for_another_text(void **state)
{
    (void)state;
    assert_true(tcp_info_site_of_text("-") == 0);
    assert_true(tcp_info_site_of_text("") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_ipv6_by_its_first_64_bits),
        cmocka_unit_test(a_site_is_the_first_48_bits_of_ipv6_or_an_ipv4_address),
        cmocka_unit_test(counts_ipv4_by_the_whole_address_in_either_form),
        cmocka_unit_test(distinguishes_the_address_families),
        cmocka_unit_test(has_no_number_for_another_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
