/* key_sheet: what the keyboard does in the viewer, and how to read it. */
import { views } from "../state.ts";
import { Dialog } from "../ui/kit.tsx";
import { panes } from "./panes.tsx";

const paneKeys: [string, string][] = views.map((view) => [panes[view].key, panes[view].label]);
paneKeys.sort(([a], [b]) => (a < b ? -1 : 1));

const keySheet: [string, string][] = [
  ["/", "Search"],
  ["n  N", "Next or previous match"],
  ["Esc", "Clear the search, then the marked function"],
  ["← ↑ ↓ →", "Move between frames"],
  ["Enter", "Zoom to the frame"],
  ["Backspace", "Zoom to the caller"],
  ["+  -  w  s", "Zoom in and out, also Ctrl and wheel, or a pinch"],
  ["a  d", "Move left and right, also drag, or Shift and wheel"],
  ["0", "Show everything"],
  [paneKeys.map(([key]) => key).join("  "), paneKeys.map(([, label], i) => (i ? label.toLowerCase() : label)).join(", ")],
  ["4", "Two views side by side, or one"],
  ["t", "Next sample type"],
  ["g", "Next grouping"],
  ["k", "Next way to colour"],
  ["l", "Mark the function in every view"],
  ["f  i  h", "Focus on, ignore, hide the function"],
  ["m  r", "Merge what it calls into it, collapse its recursion"],
  ["u  U", "Undo, redo a change of the rules"],
  [".", "Menu of the frame"],
  ["c  C", "Copy the function’s name, the whole stack"],
  ["y", "Copy the link to this view"],
  ["e", "Save this view as a file"],
  ["x", "Swap sides (comparison)"],
  ["%", "Normalise (comparison)"],
  ["?", "This sheet"],
];

export function KeySheet({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} isWide>
      <dl class="keys">
        {keySheet.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(/\s+/).map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h3>How to read it</h3>
      <p>
        Each box is a function in a stack; the box above it called it (in the flame view, the box below). Its width is
        its share of the total: wide is much. Left to right is not time but order of size. What a function called stands
        next to its box from the left on; the part with nothing next to it, at its right end, was spent in itself.
      </p>
    </Dialog>
  );
}
