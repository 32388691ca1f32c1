// The steps of Perfolio's page on a tree, without the page: measures the cost of each step alone.
import { decodeFlame, derive } from "../../../../web/src/model/tree/flame.ts";
import { layoutRow } from "../../../../web/src/model/tree/row_layout.ts";
import { compileSearch, search } from "../../../../web/src/model/search/search.ts";
import { applyRule } from "../../../../web/src/model/rules/transform.ts";
import { wholeOf } from "../../../../web/src/model/tree/window.ts";

export { decodeFlame };

export function layOut(flame: ReturnType<typeof decodeFlame>, widthPx: number): number {
  let boxes = 0;
  for (let row = 0; row < flame.rowCount; row++)
    layoutRow(flame, row, wholeOf(flame, 0), widthPx, () => void boxes++);
  return boxes;
}
export const find = (flame: ReturnType<typeof decodeFlame>, text: string) =>
  search(flame, compileSearch(text)).functionCount;
export function transform(
  flame: ReturnType<typeof decodeFlame>,
  action: "hide" | "focus",
  text: string,
): number {
  const columns = applyRule(flame, flame.frames, { action, text, isOff: false });
  derive(columns);
  return columns.frame.length;
}
