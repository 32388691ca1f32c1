/*
 * public_address: is an address one of the public Internet? For those who connect to what strangers
 * name, and shall reach neither this machine, nor its network, nor what hosts tell their guests.
 *
 * By IANA's registries of special purpose addresses (IPv4: RFC 6890 and successors, IPv6: only
 * 2000::/3 is given out): this machine, private and link-local networks, CGNAT, documentation,
 * benchmarks, protocol assignments, multicast, reserved. Addresses that carry an IPv4 address are
 * as public as that one (mapped, NAT64, ISATAP); 6to4 and Teredo are not, as nobody needs them.
 * Also not public: 168.63.129.16, where one large cloud tells its guests what they are. Threads:
 * any.
 */
#ifndef LIB_IO_PUBLIC_ADDRESS_H
#define LIB_IO_PUBLIC_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* Families other than IPv4 and IPv6 are not public. */
bool public_address_is(const struct sockaddr *address);

#endif
