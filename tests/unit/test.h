/*
 * test: what every unit test includes; cmocka needs these headers before its own, in this order.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
