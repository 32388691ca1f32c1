#include "lib/io/public_address.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct range4 {
    uint32_t base;
    int bits;
};

#define ADDRESS4(a, b, c, d)                                                                       \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static const struct range4 closed4[] = {
    {ADDRESS4(0, 0, 0, 0), 8},        /* this network */
    {ADDRESS4(10, 0, 0, 0), 8},       /* private */
    {ADDRESS4(100, 64, 0, 0), 10},    /* carriers' NAT */
    {ADDRESS4(127, 0, 0, 0), 8},      /* this machine */
    {ADDRESS4(168, 63, 129, 16), 32}, /* the metadata service of a cloud */
    {ADDRESS4(169, 254, 0, 0), 16},   /* link-local, most clouds' metadata */
    {ADDRESS4(172, 16, 0, 0), 12},    /* private */
    {ADDRESS4(192, 0, 0, 0), 24},     /* protocol assignments */
    {ADDRESS4(192, 0, 2, 0), 24},     /* documentation */
    {ADDRESS4(192, 88, 99, 0), 24},   /* relays of 6to4 */
    {ADDRESS4(192, 168, 0, 0), 16},   /* private */
    {ADDRESS4(198, 18, 0, 0), 15},    /* benchmarks */
    {ADDRESS4(198, 51, 100, 0), 24},  /* documentation */
    {ADDRESS4(203, 0, 113, 0), 24},   /* documentation */
    {ADDRESS4(224, 0, 0, 0), 3},      /* multicast, reserved, broadcast */
};

struct range6 {
    uint8_t base[16];
    int bits;
};

/* Within 2000::/3. */
static const struct range6 closed6[] = {
    {{0x20, 0x01}, 23},             /* protocol assignments, Teredo, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x20, 0x02}, 16},             /* 6to4 */
    {{0x3f, 0xff}, 20},             /* documentation */
};

static const struct range6 given_out = {{0x20}, 3};
static const struct range6 mapped = {{[10] = 0xff, [11] = 0xff}, 96};
static const struct range6 nat64 = {{0x00, 0x64, 0xff, 0x9b}, 96};

static bool is_public4(uint32_t address)
{
    for (size_t i = 0; i < sizeof(closed4) / sizeof(*closed4); i++) {
        uint32_t mask = UINT32_MAX << (32 - closed4[i].bits);
        if ((address & mask) == closed4[i].base)
            return false;
    }
    return true;
}

static bool is_in(const uint8_t *address, const struct range6 *range)
{
    size_t whole = (size_t)range->bits / 8;
    int rest = range->bits % 8;
    if (memcmp(address, range->base, whole) != 0)
        return false;
    return rest == 0 || address[whole] >> (8 - rest) == range->base[whole] >> (8 - rest);
}

static uint32_t last_four(const uint8_t *address)
{
    return ADDRESS4(address[12], address[13], address[14], address[15]);
}

/* RFC 5214: the interface's id is 0000:5efe or 0200:5efe and an IPv4 address. */
static bool is_isatap(const uint8_t *address)
{
    return (address[8] & 0xfd) == 0 && address[9] == 0 && address[10] == 0x5e &&
           address[11] == 0xfe;
}

static bool is_public6(const uint8_t *address)
{
    if (is_in(address, &mapped) || is_in(address, &nat64))
        return is_public4(last_four(address));
    if (!is_in(address, &given_out))
        return false;
    for (size_t i = 0; i < sizeof(closed6) / sizeof(*closed6); i++)
        if (is_in(address, &closed6[i]))
            return false;
    return !is_isatap(address) || is_public4(last_four(address));
}

bool public_address_is(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        return is_public4(ntohl(in.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof(in6));
        return is_public6(in6.sin6_addr.s6_addr);
    }
    return false;
}
