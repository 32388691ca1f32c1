/*
 * flame_order: sorts the siblings of a tree by value. Private to flame.c.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_ORDER_H
#define LIB_PROFILE_REPORT_FLAME_ORDER_H

#include "lib/profile/report/view.h"

/*
 * Returns the new index of each node, in scratch: again in preorder, children by descending cum
 * (the larger of both sides), equal ones in their previous order. parent describes a tree in
 * preorder; cum[VIEW_SIDE_A] may be NULL. sizes is working memory of count numbers; its contents
 * are undefined afterwards.
 */
uint32_t *flame_order(struct arena *scratch, const uint32_t *parent, uint32_t count,
                      int64_t *const *cum, uint32_t *sizes);

#endif
