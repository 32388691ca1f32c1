/* key_sheet: lists the keys of the viewer and explains how to read it. */
import { useState } from "preact/hooks";
import { views } from "../../view_state.ts";
import { Dialog } from "../../ui/kit.tsx";
import { panes } from "../panes.tsx";
import { areSingleKeysOff, setKeysOff } from "./use_keys.ts";
import { addStyle } from "../../ui/later.tsx";
import style from "./key_sheet.css?text";

addStyle(style);

const inOrder = views.map((view) => panes[view]).sort((a, b) => (a.key < b.key ? -1 : 1));

const keys = [
  ["/  Ctrl+F", "Search (press Ctrl+F again for the browser’s search)"],
  ["n  N", "Next or previous match"],
  ["Esc", "Clear the search, then the marked function"],
  ["← ↑ ↓ →", "Move between frames; ↑ and ↓ between the rows of a table"],
  ["Home  End  PageUp  PageDown", "First row, last row, a page up or down"],
  ["Enter", "Zoom to the frame"],
  ["Backspace", "Zoom to the caller"],
  ["+  -  w  s", "Zoom in and out, also Ctrl and wheel, a pinch"],
  ["a  d", "Move left and right, also drag, or Shift and wheel"],
  ["0", "Show everything"],
  ["4", "Two views side by side, or one"],
  ["t", "Next sample type"],
  ["g", "Next grouping"],
  ["k", "Next colour mode"],
  ["l", "Mark the function in every view"],
  ["f  i  h", "Focus on, ignore, hide the function"],
  ["m  r", "Fold callees, collapse recursion"],
  ["u  U", "Undo or redo a change of the rules"],
  [".", "Menu of the frame"],
  ["c  C", "Copy the function’s name, the whole stack"],
  ["y", "Copy the link to this view (shortened when long)"],
  ["e", "Save this view as a file"],
  ["x", "Swap sides (comparison)"],
  ["%", "Normalise (comparison)"],
  ["[  ]", "Older or newer profile in the list; in a comparison the profile before or after"],
  ["?", "Show this list"],
];

export function KeySheet({ hasComments, onClose }: { hasComments: boolean; onClose: () => void }) {
  const [areOn, setOn] = useState(!areSingleKeysOff());
  const kinds = inOrder.filter((kind) => hasComments || kind !== panes.comments);
  return (
    <Dialog title="Keys" onClose={onClose} isWide>
      <dl class="keys">
        {[...kinds.map(({ key, label }) => [key, label]), ...keys].map(([pressed, what]) => (
          <div key={pressed}>
            <dt>
              {pressed.split(/\s+/).map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={areOn}
          onChange={({ currentTarget }) => (
            setKeysOff(!currentTarget.checked),
            setOn(!areSingleKeysOff())
          )}
        />
        <span>Single-character keys work anywhere on the page (stored in this browser)</span>
      </label>
      <h3>How to read the flame graph</h3>
      <p>
        Each box is a function in a stack. The box above it is its caller (in the flame view, the
        box below). The width of a box is its share of the total; in a comparison, it is the larger
        of before and after. Boxes are sorted by size from left to right, not by time. A function’s
        callees start at its left edge; the rest of its width, at the right end, is its self value.
      </p>
    </Dialog>
  );
}
