/*
 * version: of the server, and as what it speaks to others.
 */
#ifndef API_VERSION_H
#define API_VERSION_H

#ifndef PERFOLIO_VERSION
#define PERFOLIO_VERSION "0.1.0"
#endif
#define VERSION_USER_AGENT "perfolio/" PERFOLIO_VERSION

#endif
