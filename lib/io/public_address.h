/*
 * public_address: checks whether an address belongs to the public Internet. For connections to
 * hosts that untrusted users name, which must not reach this machine, its network, or a cloud's
 * metadata service.
 *
 * According to IANA's registries of special purpose addresses (IPv4: RFC 6890 and successors; IPv6:
 * only 2000::/3 is allocated), these are not public: this machine, private and link-local networks,
 * CGNAT, documentation, benchmarks, protocol assignments, multicast, reserved. An address that
 * embeds an IPv4 address is public if that one is (mapped, NAT64, ISATAP); 6to4 and Teredo are not
 * public, because they are not needed. Also not public: 168.63.129.16, the metadata address of one
 * large cloud. Threads: any.
 */
#ifndef LIB_IO_PUBLIC_ADDRESS_H
#define LIB_IO_PUBLIC_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* Address families other than IPv4 and IPv6 are not public. */
bool public_address_is(const struct sockaddr *address);

#endif
