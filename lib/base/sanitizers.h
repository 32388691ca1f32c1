/*
 * sanitizers: states whether the code is compiled with AddressSanitizer or ThreadSanitizer. For the
 * few functions that would hide faults from them, or that they make too slow to compile.
 */
#ifndef LIB_BASE_SANITIZERS_H
#define LIB_BASE_SANITIZERS_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#endif
