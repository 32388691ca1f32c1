/*
 * version: the version of the server, and its User-Agent.
 */
#ifndef API_CORE_VERSION_H
#define API_CORE_VERSION_H

#include "lib/base/version.h"

#define VERSION_USER_AGENT "perfolio/" PERFOLIO_VERSION

#endif
