/* view_address: the state of a view in the address bar, which alone reads and writes it there. */
import { useEffect, useRef, useState } from "preact/hooks";
import { formatState, parseState, type Update, type ViewState } from "../state.ts";

function writeAddress(address: string, how: "push" | "replace"): void {
  if (address === location.pathname + location.search) return;
  try {
    history[how === "push" ? "pushState" : "replaceState"](null, "", address);
  } catch {
    // Some browsers refuse more than a hundred changes in half a minute; the next one will do.
  }
}

/** For another file in the same page: a view of one says nothing about the next. */
export const forgetView = () => writeAddress(location.pathname, "replace");

/** What a link to the view that is in the address bar ends with. */
export const viewQuery = () => formatState(parseState(location.search));

/** The state in the address bar; changes are written to it, back and forward are followed. */
export function useViewState(initial = ""): [ViewState, Update] {
  const [state, setState] = useState(() => parseState(location.search || initial));
  const latest = useRef(state);
  useEffect(() => {
    const follow = () => setState((latest.current = parseState(location.search)));
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  const update: Update = (patch, how = "push") => {
    const halves = "marked" in patch ? { above: null, below: null } : {}; // they are of the function
    const next = { ...latest.current, ...halves, ...patch };
    writeAddress(location.pathname + formatState(next), how);
    latest.current = next;
    setState(next);
  };
  return [state, update];
}
