/*
 * version: of these programs, and as what they speak to servers.
 */
#ifndef CLI_VERSION_H
#define CLI_VERSION_H

#define CLI_VERSION "0.1.0"
#define CLI_USER_AGENT "perfolio-cli/" CLI_VERSION

#endif
