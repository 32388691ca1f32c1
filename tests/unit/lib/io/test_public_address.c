/* The first and last address of each range and their neighbours; mapped and embedded IPv4
 * addresses too. */
#include "tests/unit/test.h"

#include "lib/io/public_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static bool is_public(const char *text)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } address = {.any.sa_family = AF_INET};
    if (strchr(text, ':')) {
        address.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
        assert_int_equal(inet_pton(AF_INET6, text, &address.in6.sin6_addr), 1);
    } else {
        assert_int_equal(inet_pton(AF_INET, text, &address.in.sin_addr), 1);
    }
    return public_address_is(&address.any);
}

static void check(const char *text, bool expected)
{
    if (is_public(text) != expected)
        fail_msg("%s is %s", text, expected ? "public" : "not public");
}

static const char *const closed4[] = {
    "0.0.0.0",         "0.0.0.1",         "0.255.255.255",   "10.0.0.0",        "10.1.2.3",
    "10.255.255.255",  "100.64.0.0",      "100.100.100.200", "100.127.255.255", "127.0.0.0",
    "127.0.0.1",       "127.1.2.3",       "127.255.255.255", "168.63.129.16",   "169.254.0.0",
    "169.254.169.254", "169.254.170.2",   "169.254.169.123", "169.254.255.255", "172.16.0.0",
    "172.17.0.1",      "172.20.10.1",     "172.31.255.255",  "192.0.0.0",       "192.0.0.8",
    "192.0.0.170",     "192.0.0.192",     "192.0.0.255",     "192.0.2.0",       "192.0.2.255",
    "192.88.99.0",     "192.88.99.1",     "192.88.99.255",   "192.168.0.0",     "192.168.1.1",
    "192.168.255.255", "198.18.0.0",      "198.18.0.1",      "198.19.255.255",  "198.51.100.0",
    "198.51.100.255",  "203.0.113.0",     "203.0.113.255",   "224.0.0.0",       "224.0.0.251",
    "232.1.2.3",       "239.255.255.255", "240.0.0.0",       "250.1.2.3",       "255.255.255.254",
    "255.255.255.255",
};

static const char *const public4[] = {
    "1.0.0.0",         "1.1.1.1",         "8.8.8.8",         "9.255.255.255",  "11.0.0.0",
    "100.63.255.255",  "100.128.0.0",     "126.255.255.255", "128.0.0.0",      "168.63.129.15",
    "168.63.129.17",   "169.253.255.255", "169.255.0.0",     "172.15.255.255", "172.32.0.0",
    "191.255.255.255", "192.0.1.0",       "192.0.1.255",     "192.0.3.0",      "192.31.196.1",
    "192.88.98.255",   "192.88.100.0",    "192.167.255.255", "192.169.0.0",    "198.17.255.255",
    "198.20.0.0",      "198.51.99.255",   "198.51.101.0",    "203.0.112.255",  "203.0.114.0",
    "209.132.183.105", "223.255.255.255",
};

static const char *const closed6[] = {
    "::",
    "::1",
    "::2",
    "::7f00:1",
    "::ffff",
    "::ffff:0:7f00:1",
    "64:ff9b:1::1",
    "64:ff9b:1::808:808",
    "64:ff9b::1:808:808",
    "100::",
    "100::1",
    "100:0:0:1::1",
    "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001::",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:3::1",
    "2001:10::1",
    "2001:20::1",
    "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db8::",
    "2001:db8:85a3::8a2e:370:7334",
    "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    "2002::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:808:808::1",
    "2002:ffff:ffff::1",
    "3fff::1",
    "3fff:fff:ffff::1",
    "4000::1",
    "5f00::1",
    "8000::1",
    "fc00::",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fe00::1",
    "fe80::",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "febf:ffff::1",
    "fec0::1",
    "feff::1",
    "ff00::",
    "ff01::1",
    "ff02::1",
    "ff02::fb",
    "ff05::2",
    "ff0e::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2a00:1450::5efe:7f00:1",
    "2a00:1450::5efe:10.0.0.1",
    "2a00:1450::200:5efe:192.168.1.1",
};

static const char *const public6[] = {
    "2000::1",
    "2001:200::1",
    "2001:470::1",
    "2001:4860:4860::8888",
    "2001:db7:ffff::1",
    "2001:db9::1",
    "2003::1",
    "2400:cb00::1",
    "2600::1",
    "2606:4700:4700::1111",
    "2620:52:3:1:0:246e:9693:128c",
    "2a00:1450:4001::200e",
    "2a00:1450::5efe:8.8.8.8",
    "2a00:1450::200:5efe:8.8.8.8",
    "2a00:1450::300:5efe:10.0.0.1",
    "3ffe:ffff::1",
    "3fff:1000::1",
};

#define EACH(list) for (size_t i = 0; i < sizeof(list) / sizeof(*(list)); i++)

static void distinguishes_public_from_private_addresses(void **state)
{
    (void)state;
    EACH(closed4) check(closed4[i], false);
    EACH(public4) check(public4[i], true);
    EACH(closed6) check(closed6[i], false);
    EACH(public6) check(public6[i], true);
}

static void an_embedded_address_decides(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"::ffff:", "64:ff9b::", "0:0:0:0:0:ffff:"};
    char text[64];
    for (size_t p = 0; p < sizeof(prefixes) / sizeof(*prefixes); p++) {
        EACH(closed4)
        {
            snprintf(text, sizeof(text), "%s%s", prefixes[p], closed4[i]);
            check(text, false);
        }
        EACH(public4)
        {
            snprintf(text, sizeof(text), "%s%s", prefixes[p], public4[i]);
            check(text, true);
        }
    }
}

static void other_families_are_private(void **state)
{
    (void)state;
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/postgresql/x"};
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    assert_false(public_address_is((const struct sockaddr *)&local));
    assert_false(public_address_is(&none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinguishes_public_from_private_addresses),
        cmocka_unit_test(an_embedded_address_decides),
        cmocka_unit_test(other_families_are_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
