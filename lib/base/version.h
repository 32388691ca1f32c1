/*
 * version: the version of all programs of this source tree.
 */
#ifndef LIB_BASE_VERSION_H
#define LIB_BASE_VERSION_H

#ifndef PERFOLIO_VERSION
#define PERFOLIO_VERSION "0.1.0"
#endif

#endif
