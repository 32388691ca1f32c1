/*
 * version: the version of all programs of this source tree.
 *
 * Written from the file VERSION by tests/lint/version.py --write, which `make check` compares.
 */
#ifndef LIB_BASE_VERSION_H
#define LIB_BASE_VERSION_H

#define PERFOLIO_VERSION "0.1.0-dev"

#endif
