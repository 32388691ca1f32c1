/*
 * rate_limiter: limits for clients and accounts: rates of events, failures with a doubling
 * back-off, and concurrency slots.
 *
 * All state is in memory, of fixed size, and forgotten at restart. A counter is identified by its
 * kind and a key, a text: an address, a tenant's number, an account. Keys are stored as keyed
 * hashes only. When a bucket of the hash table is full, its entry that was unused for longest is
 * replaced. Keys of the kinds that end in _ADDRESS are addresses; IPv6 counts by its /64, since one
 * subscriber has all of it. Keys of kinds that end in _SITE are addresses, too; IPv6 counts by its
 * /48, which is the most that one customer of a network usually has. Threads: any.
 */
#ifndef API_HTTP_RATE_LIMITER_H
#define API_HTTP_RATE_LIMITER_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

/* "2001:db8:1:2::/64" with its NUL, or a client's address (request.h). */
enum { RATE_LIMITER_SUBSCRIBER_BYTES = 64 };

/* The most requests that wait for a slot of SLOT_PASSWORD; each holds a thread. */
enum { RATE_LIMITER_WAITERS = 24 };

struct rate_limiter;

enum limit_kind {
    /* Failures, with doubling back-off. */
    LIMIT_SIGN_IN_ADDRESS, /* wrong passwords for any account from an address */
    LIMIT_SIGN_IN_SITE,    /* the same from a site, for shares, too; see rate_limiter_enter */
    LIMIT_SIGN_IN_PAIR,    /* wrong passwords for one e-mail, with or without an account, from an
                              address */
    LIMIT_SIGN_IN_DEVICE,  /* wrong passwords from a browser; key: the id in its device cookie */
    LIMIT_SHARE_PASSWORD_ADDRESS, /* wrong passwords for any share from an address */
    LIMIT_SHARE_PASSWORD_PAIR,    /* wrong passwords for one share from an address */
    LIMIT_MISS_ADDRESS, /* requests for ids that do not exist, anonymous, from an address */
    /* Rates. */
    LIMIT_PASSWORD_ADDRESS, /* passwords that an address tries or sets, right or wrong */
    LIMIT_PASSWORD_DEVICES, /* passwords for an e-mail from browsers with device cookies */
    LIMIT_SIGN_IN_ACCOUNT,  /* passwords for an e-mail from all addresses, without device cookies */
    LIMIT_SHARE_PASSWORD,   /* passwords for a share from all addresses; key: its id */
    LIMIT_UPLOAD_TENANT,    /* uploads of a tenant; key: its number */
    LIMIT_UPLOAD_ADDRESS,   /* anonymous uploads from an address */
    LIMIT_UPLOAD_BYTES_ADDRESS, /* bytes of anonymous uploads from an address */
    LIMIT_UPLOAD_BYTES_SITE,    /* bytes of anonymous uploads from a site */
    LIMIT_REPORT_ADDRESS,       /* reports of shares from an address */
    LIMIT_LINK_ADDRESS,         /* short links created by anonymous requests from an address */
    LIMIT_LINK_TENANT,    /* short links created by a tenant's people and tokens; key: its number */
    LIMIT_CHANGE_TENANT,  /* changes by a tenant's people and tokens; key: its number */
    LIMIT_CHANGE_CLIENT,  /* changes by one token or user; key: kind and number */
    LIMIT_SECURITY_USER,  /* changes of roles and passwords by a user; key: its number */
    LIMIT_CHANGE_ADDRESS, /* changes by anonymous requests from an address */
    LIMIT_AUDIT_HOURLY,   /* rows of audit_record_hourly; key: tenant, action, target and author */
    LIMIT_COMMENT_USER,   /* comments written or edited by a user; key: its number */
    LIMIT_AUDIT_TENANT,   /* refused attempts in a tenant's audit log; key: its number */
    LIMIT_AUDIT_SERVER,   /* refused attempts in the audit logs of all tenants together */
    LIMIT_KIND_COUNT
};

enum limit_slot {
    SLOT_PASSWORD,        /* scrypt, for accounts */
    SLOT_PASSWORD_SHARE,  /* scrypt, for shares */
    SLOT_PASSWORD_DEVICE, /* scrypt, for browsers with a device cookie */
    LIMIT_SLOT_COUNT
};

/* entry_count entries of 40 bytes; now_ns is clock_monotonic_ns, or a test's clock. */
struct rate_limiter *rate_limiter_create(uint32_t entry_count, int64_t (*now_ns)(void));
void rate_limiter_destroy(struct rate_limiter *rate_limiter); /* NULL is a no-op */

/* A token bucket: takes one event, of which per_minute are allowed on average and burst at once.
 * Errors: ERR_RATE_LIMITED, with the seconds until the next one. */
enum err_code rate_limiter_take(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                struct span key, double per_minute, double burst,
                                struct err *err) MUST_USE;
/* The same for many events at once, such as bytes. If they are more than burst, burst is taken. */
enum err_code rate_limiter_take_amount(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                       struct span key, double wanted, double per_minute,
                                       double burst, struct err *err) MUST_USE;
/* Takes events that happened already, such as bytes that were known only after the rest was
 * allowed. It refuses nothing: if the bucket has too few events, their number becomes negative, and
 * later calls are refused until it has filled again. At most four bursts are taken. */
void rate_limiter_charge_amount(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                struct span key, double amount, double per_minute, double burst);
/* Gives an event that rate_limiter_take took back to the bucket. No-op if the bucket is forgotten.
 */
void rate_limiter_give_back(struct rate_limiter *rate_limiter, enum limit_kind kind,
                            struct span key);
/* The same for many events at once. */
void rate_limiter_give_back_amount(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                   struct span key, double amount);

/* Writes the form in which an address is a key of the kinds that end in _ADDRESS: an IPv6 address
 * becomes its /64, any other address stays as it is. */
void rate_limiter_subscriber(struct span address, char ret_text[RATE_LIMITER_SUBSCRIBER_BYTES]);
/* The same for the kinds that end in _SITE: an IPv6 address becomes its /48. */
void rate_limiter_site(struct span address, char ret_text[RATE_LIMITER_SUBSCRIBER_BYTES]);

/* Whether an attempt is allowed now. Errors: ERR_RATE_LIMITED while the back-off of earlier
 * failures lasts. */
enum err_code rate_limiter_check(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                 struct span key, struct err *err) MUST_USE;
/* Counts a failure. The first failures of a kind are free, then each doubles the wait, up to its
 * limit; all are forgotten after a time without failures. */
void rate_limiter_fail(struct rate_limiter *rate_limiter, enum limit_kind kind, struct span key);
/* rate_limiter_check and rate_limiter_fail in one step, for attempts that are costly: parallel
 * attempts cannot all pass the check. After a success, call rate_limiter_forgive. Errors:
 * ERR_RATE_LIMITED; no failure is counted then. */
enum err_code rate_limiter_attempt(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                   struct span key, struct err *err) MUST_USE;
/* Takes back one failure, because the attempt succeeded, and ends the back-off. */
void rate_limiter_forgive(struct rate_limiter *rate_limiter, enum limit_kind kind, struct span key);
/* Forgets all failures, after the right password. */
void rate_limiter_reset(struct rate_limiter *rate_limiter, enum limit_kind kind, struct span key);

/* Takes an event of kind LIMIT_PASSWORD_ADDRESS or LIMIT_PASSWORD_DEVICES. The rate was set by
 * rate_limiter_set_passwords (default: 30 per minute); twice that number may come at once. Errors:
 * ERR_RATE_LIMITED. */
enum err_code rate_limiter_take_password(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                         struct span key, struct err *err) MUST_USE;
/* Call it before the first request. */
void rate_limiter_set_passwords(struct rate_limiter *rate_limiter, int per_minute);

/*
 * Takes one of the slots of a kind, after a wait if none is free; rate_limiter_leave with the same
 * source returns it. A source has one slot at a time, and one request that waits for a slot, so
 * that one client cannot keep all slots. Waiting requests get slots in the order of their arrival,
 * but first those from sites that have not failed to sign in within an hour (LIMIT_SIGN_IN_SITE):
 * however many addresses guess passwords, a person from a site without failures waits for one or
 * two hashes only. If the list is full, a request from such a site replaces the last one from a
 * site that has failed. source: the client's address, whose site counts; for SLOT_PASSWORD_DEVICE
 * the account's e-mail. Errors: ERR_BUSY (the list is full, the source waits already, or the wait
 * was too long: 20 s for SLOT_PASSWORD, 5 s for the others).
 */
enum err_code rate_limiter_enter(struct rate_limiter *rate_limiter, enum limit_slot slot,
                                 struct span source, struct err *err) MUST_USE;
/* Whether the address's site has failed to sign in within an hour, apart from the attempt that was
 * counted last. */
bool rate_limiter_has_failed(struct rate_limiter *rate_limiter, struct span address);
void rate_limiter_leave(struct rate_limiter *rate_limiter, enum limit_slot slot,
                        struct span source);
/* The number of requests that wait for a slot now. For tests. */
int rate_limiter_waiting_count(struct rate_limiter *rate_limiter, enum limit_slot slot);

#endif
