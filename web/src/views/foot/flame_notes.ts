/* flame_notes: totals of a tree, and notes on the meaning of its numbers. */
import { FrameFlag, hasSigns, type Flame } from "../../model/tree/flame.ts";
import { formatCount, formatPercent, formatValue } from "../../model/text/units.ts";

function valueWithoutSymbols({ frames, frame, self, nodeCount }: Flame): number {
  const isUnnamed = new Uint8Array(frames.count);
  let hasUnnamed = 0;
  for (let i = 0; i < isUnnamed.length; i++)
    hasUnnamed |= isUnnamed[i] = frames.flags(i) & FrameFlag.NotSymbolised;
  let value = 0;
  if (hasUnnamed)
    for (let i = 1; i < nodeCount; i++) if (isUnnamed[frame[i]]) value += Math.abs(self[i]);
  return value;
}

/** Notes that a reader needs to interpret the numbers. */
export function notesAbout(flame: Flame): string[] {
  const notes: string[] = [];
  const unit = flame.metadata.unit ?? "";
  if (flame.isCut) {
    const count = flame.metadata.cut?.nodes;
    notes.push(
      `${count ? formatCount(count) + " small stacks" : "The smallest stacks"} are merged into ` +
        "“other” boxes.",
    );
  }
  if (flame.width[0] > Number.MAX_SAFE_INTEGER)
    notes.push("Some values are too large to be shown exactly; their last digits are rounded.");
  if (hasSigns(flame))
    notes.push(
      "Values below zero are hatched. The width of a box is the absolute value. Percentages " +
        `relate to the sum, ${flame.isDiff ? `${formatValue(flame.baseTotal, unit)} → ` : ""}` +
        `${formatValue(flame.total, unit)}.`,
    );
  const unnamed = valueWithoutSymbols(flame);
  if (unnamed > 0.005 * Math.abs(flame.total))
    notes.push(`${formatPercent(unnamed, flame.total)} is in code without symbols.`);
  return notes;
}

/** "289 of 462" if rules left a part. */
export function totalText(flame: Flame, unit: string): string {
  if (flame.isDiff)
    return `${formatValue(flame.baseTotal, unit)} → ${formatValue(flame.total, unit)}`;
  const whole = formatValue(flame.total, unit);
  return flame.cum[0] === flame.total
    ? whole
    : `${flame.bounds.whole}${formatValue(flame.cum[0], unit)} of ${whole}`;
}

/**
 * The percentage of the whole profile that remains after the rules, with the bound of a truncated
 * tree (Bounds.whole); for a diff, those of both sides.
 */
export function shareLeft(flame: Flame, source: Flame): string {
  const shareOf = (value: number, total: number) =>
    flame.bounds.whole + formatPercent(value, total);
  const after = shareOf(flame.cum[0], source.total);
  return flame.baseCum ? `${shareOf(flame.baseCum[0], source.baseTotal)} → ${after}` : after;
}
