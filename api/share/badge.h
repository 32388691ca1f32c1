/*
 * badge: /p/<id>/badge.svg, a small picture for a README: "profile | 12.3 s CPU", the total of a
 * sample type. It is made from the share's row without decoding, unless the address has parameters
 * of a page (api/report/viewer_url_state.h) with rules, a search or a zoom: then it is a report
 * (api/report/report.h) and shows their result, "3.20 s CPU (26.0 %) · search json: 12.3 %". The
 * picture contains the same text for screen readers, and the widths of its texts, so that it looks
 * the same with any font.
 */
#ifndef API_SHARE_BADGE_H
#define API_SHARE_BADGE_H

#include "api/http/route.h"

extern const struct route_table badge_routes;

#endif
