/*
 * flame_order: siblings of a tree in order of their value; for flame.c alone.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_ORDER_H
#define LIB_PROFILE_REPORT_FLAME_ORDER_H

#include "lib/profile/report/view.h"

/*
 * The new place of each node, in scratch: preorder again, children by the larger of both sides'
 * cum, equal ones as they stood. parent is of a tree in preorder; cum[VIEW_SIDE_A] may be NULL.
 * sizes has room for count numbers; what is in it afterwards is of no use.
 */
uint32_t *flame_order(struct arena *scratch, const uint32_t *parent, uint32_t count,
                      int64_t *const *cum, uint32_t *sizes);

#endif
