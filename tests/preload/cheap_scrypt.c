/*
 * cheap_scrypt: a library for LD_PRELOAD that makes scrypt a thousand times cheaper in the servers
 * that tests start. Hashing the passwords of test users would take half of a test's CPU time.
 *
 * The product has no setting for the cost, so a server cannot run with weak hashes by accident.
 * Cost parameters from 2^14 on are replaced by 2^4, both when a password is stored and when it is
 * checked. Tests that need the real time of a hash start a server without this library.
 */
#include <dlfcn.h>
#include <openssl/evp.h>

enum { REAL_N = 1 << 14, CHEAP_N = 1 << 4 };

typedef int scrypt_function(const char *password, size_t password_size, const unsigned char *salt,
                            size_t salt_size, uint64_t n, uint64_t r, uint64_t p,
                            uint64_t memory_limit, unsigned char *key, size_t key_size);

int EVP_PBE_scrypt(const char *password, size_t password_size, const unsigned char *salt,
                   size_t salt_size, uint64_t n, uint64_t r, uint64_t p, uint64_t memory_limit,
                   unsigned char *key, size_t key_size)
{
    scrypt_function *real;
    *(void **)&real = dlsym(RTLD_NEXT, "EVP_PBE_scrypt");
    return real(password, password_size, salt, salt_size, n < REAL_N ? n : CHEAP_N, r, p,
                memory_limit, key, key_size);
}
