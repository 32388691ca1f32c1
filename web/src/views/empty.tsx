/* empty: replaces the panes if there is nothing to show, with a way to continue. */
import type { Flame } from "../model/tree/flame.ts";
import { formatValue, shownUnit } from "../model/text/units.ts";
import { Button } from "../ui/kit.tsx";

interface EmptyProps {
  flame: Flame;
  hasRules: boolean;
  onClear: () => void;
  /** Shows absolute values; present if a comparison is normalised and a total is not above zero. */
  onAbsolute?: () => void;
}

/**
 * States which side cannot be normalised. The total of the side after is not known here, because
 * the tree contains only its scaled values, which are 0 then.
 */
function shareless({ baseTotal, metadata }: Flame): string {
  if (baseTotal > 0) return "The total of this type in the profile after is not above zero.";
  if (baseTotal < 0)
    return (
      `The total of the profile before is ${formatValue(baseTotal, metadata.unit ?? "")}, ` +
      "which is not above zero."
    );
  return "The profile before has no values of this type.";
}

export function EmptyView({ flame, hasRules, onClear, onAbsolute }: EmptyProps) {
  const { unit } = flame.metadata;
  return (
    <div class="views">
      {onAbsolute ? (
        <div class="empty">
          <h2>Cannot normalise</h2>
          <p>{shareless(flame)}</p>
          <p>
            <Button look="primary" onClick={onAbsolute}>
              Turn normalising off
            </Button>
          </p>
        </div>
      ) : hasRules ? (
        <div class="empty">
          <h2>No stack matches the rules</h2>
          <p>
            No stack of {flame.isDiff ? "either profile" : "this profile"} passes all of them.
            Switch one off by pressing it, or start over.
          </p>
          <p>
            <Button look="primary" onClick={onClear}>
              Clear the rules
            </Button>
          </p>
        </div>
      ) : (
        <div class="empty">
          <h2>No samples of this type</h2>
          <p>
            {flame.isDiff
              ? "Neither profile, before nor after, has a value"
              : "The profile has no value"}
            {unit ? ` in ${shownUnit(unit)}` : ""} here. Other sample types, if there are any, are
            in the menu above.
          </p>
        </div>
      )}
    </div>
  );
}
