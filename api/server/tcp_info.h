/*
 * tcp_info: the kernel's information about a TCP connection: its progress and its peer.
 */
#ifndef API_SERVER_TCP_INFO_H
#define API_SERVER_TCP_INFO_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr_storage;

/* Bytes received, and bytes sent that the peer has acknowledged, since the connection began. False
 * if fd is no TCP socket or the kernel does not provide them. */
bool tcp_info_progress(int fd, uint64_t *ret_received, uint64_t *ret_acked);

/* Whether the peer has closed its sending side, or the connection is broken. Data that the peer
 * sent before may still have to be read. */
bool tcp_info_has_ended(int fd);

/* One number per subscriber (api/http/rate_limiter.h): of an IPv4 address, or of the /64 of an IPv6
 * address. 0 for any other kind of address. */
uint64_t tcp_info_subscriber(const struct sockaddr_storage *address);
/* One number per site: of an IPv4 address, or of the /48 of an IPv6 address. Takes a subscriber. */
uint64_t tcp_info_site(uint64_t subscriber);
/* The site of an address in text form. */
uint64_t tcp_info_site_of_text(const char *address);

#endif
