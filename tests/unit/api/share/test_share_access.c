#include "tests/unit/test.h"

#include "api/core/server.h"
#include "api/http/rate_limiter.h"
#include "api/http/request_limits.h"
#include "api/identity/identity_parts.h"
#include "api/identity/password.h"
#include "api/identity/password_cache.h"
#include "api/share/share.h"
#include "api/share/share_access.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

static const struct http_field password_field = {SPAN_LITERAL("x-perfolio-password"),
                                                 SPAN_LITERAL("open sesame")};

static struct share protected_share(struct rate_limiter *rate_limiter, const char *password,
                                    char hash[DIGEST_PASSWORD_BYTES])
{
    struct err err;
    assert_int_equal(password_hash(rate_limiter, SLOT_PASSWORD_SHARE, span_text("192.0.2.1"),
                                   span_text(password), hash, &err),
                     ERR_NONE);
    return (struct share){
        .id = "AAAAAAAAAAAAAAAAAAAAAA", .visibility = SHARE_PASSWORD, .password_hash = hash};
}

/* A request may be handled more than once, and verifying a password is expensive. The state of the
 * rate limiter shows whether it was verified again. */
static void a_right_password_is_verified_once_per_request(void **state)
{
    (void)state;
    struct request_limits limits = {.rate_limiter = rate_limiter_create(64, clock_monotonic_ns)};
    struct identity_parts identity = {.passwords = password_cache_create(clock_monotonic_ns)};
    struct server server = {.limits = &limits, .identity = &identity};
    struct request request = {
        .server = &server, .fields = &password_field, .field_count = 1, .address = "192.0.2.1"};
    char hashes[3][DIGEST_PASSWORD_BYTES];
    struct err err;
    struct share shares[3];
    for (int i = 0; i < 3; i++)
        shares[i] = protected_share(limits.rate_limiter, "open sesame", hashes[i]);
    assert_int_equal(share_access_check_read(&request, &shares[0], &err), ERR_NONE);
    assert_int_equal(share_access_check_read(&request, &shares[1], &err), ERR_NONE);
    for (int i = 0; i < 100; i++)
        rate_limiter_fail(limits.rate_limiter, LIMIT_SHARE_PASSWORD_ADDRESS,
                          span_text(request.address));
    assert_int_equal(share_access_check_read(&request, &shares[0], &err), ERR_NONE);
    assert_int_equal(share_access_check_read(&request, &shares[1], &err), ERR_NONE);
    assert_int_equal(share_access_check_read(&request, &shares[2], &err), ERR_RATE_LIMITED);
    struct request other = request;
    memset(other.matched_hashes, 0, sizeof(other.matched_hashes));
    assert_int_equal(share_access_check_read(&other, &shares[0], &err), ERR_RATE_LIMITED);
    rate_limiter_destroy(limits.rate_limiter);
    password_cache_destroy(identity.passwords);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_password_is_verified_once_per_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
