/*
 * version: of the server, and as what it speaks to others.
 */
#ifndef API_CORE_VERSION_H
#define API_CORE_VERSION_H

#include "lib/base/version.h"

#define VERSION_USER_AGENT "perfolio/" PERFOLIO_VERSION

#endif
