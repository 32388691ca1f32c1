/*
 * version: the version of the command line, and its User-Agent.
 */
#ifndef CLI_VERSION_H
#define CLI_VERSION_H

#include "lib/base/version.h"

#define CLI_VERSION PERFOLIO_VERSION
#define CLI_USER_AGENT "perfolio-cli/" CLI_VERSION

#endif
