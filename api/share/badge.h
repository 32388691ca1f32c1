/*
 * badge: /p/<id>/badge.svg, a small picture for a README: "profile | 12.3 s CPU", the total of a
 * sample type. It is made from the share's row; nothing is decoded, unless a page's address is
 * given (api/report/viewer_url_state.h) with rules, a search or a zoom: then it is a report
 * (api/report/report.h) and says what these show, "3.20 s CPU (26.0 %) · search json: 12.3 %". The
 * picture says the same in words to those who cannot see it, and its texts have their widths with
 * them, so that it looks the same whatever fonts a reader has.
 */
#ifndef API_SHARE_BADGE_H
#define API_SHARE_BADGE_H

#include "api/http/route.h"

extern const struct route_table badge_routes;

#endif
