/* empty: what stands in the views' place where there is nothing to show, with the way out of it. */
import { Button } from "../ui/kit.tsx";

interface EmptyProps {
  isFlameOf: string;
  hasRules: boolean;
  onClear: () => void;
  /** Given where a comparison is normalised and a total is not above zero: shows it as it is. */
  onAbsolute?: () => void;
}

export function EmptyView({ isFlameOf, hasRules, onClear, onAbsolute }: EmptyProps) {
  return (
    <div class="views">
      {onAbsolute ? (
        <div class="empty">
          <h2>Nothing to normalise by</h2>
          <p>A total of this type is not above zero.</p>
          <p>
            <Button look="primary" onClick={onAbsolute}>Compare the values as they are</Button>
          </p>
        </div>
      ) : hasRules ? (
        <div class="empty">
          <h2>The rules leave nothing</h2>
          <p>No stack of this profile passes all of them. Switch one off by pressing it, or start over.</p>
          <p>
            <Button look="primary" onClick={onClear}>Clear the rules</Button>
          </p>
        </div>
      ) : (
        <div class="empty">
          <h2>No samples of this type</h2>
          <p>
            The profile holds no value{isFlameOf ? ` in ${isFlameOf}` : ""} here. Try another sample type: the menu above lists
            what was recorded.
          </p>
        </div>
      )}
    </div>
  );
}
