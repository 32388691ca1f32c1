/* view_address: reads the state of a view from the address bar, and is the only module that writes it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { formatState, parseState, stateVersion, type Update, type ViewState } from "../state.ts";

type How = "push" | "replace";

/** Browsers refuse more than one or two hundred changes in half a minute, some without a word. */
const retryMs = 1000;
const mostTries = 60;
let refused: { how: How; timer: number } | null = null;

function forgetRefused(): void {
  clearTimeout(refused?.timer);
  refused = null;
}

/** What is refused is tried again, unless another comes first, which then is the step in the history that it was to be. */
export function writeAddress(address: string, how: How, tries = mostTries): void {
  const step = refused?.how === "push" ? "push" : how;
  forgetRefused();
  const { href } = new URL(address, location.href);
  if (href === location.href.split("#")[0]) return;
  try {
    history[step === "push" ? "pushState" : "replaceState"](null, "", href);
  } catch {
    // As where it is refused without a word.
  }
  if (location.href !== href && tries > 1)
    refused = {
      how: step,
      timer: window.setTimeout(() => writeAddress(address, step, tries - 1), retryMs),
    };
}

/** For another file in the same page: a view of one says nothing about the next. */
export const forgetView = () => writeAddress(location.pathname, "replace");

/** What a link to the view that is in the address bar ends with. */
export const viewQuery = () => formatState(parseState(location.search));

/** The state in the address bar; changes are written to it, back and forward are followed. initial: what an address without one means. */
export function useViewState(initial = ""): [ViewState, Update] {
  const read = () => parseState(location.search || initial);
  const [state, setState] = useState(read);
  const latest = useRef(state);
  useEffect(() => {
    const follow = () => {
      forgetRefused();
      setState((latest.current = read()));
    };
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  const update: Update = (patch, how = "push") => {
    const halves = "marked" in patch ? { above: null, below: null } : {}; // they are of the function
    const next = { ...latest.current, ...halves, ...patch };
    writeAddress(
      location.pathname + (formatState(next) || (initial && `?sv=${stateVersion}`)),
      how,
    );
    latest.current = next;
    setState(next);
  };
  return [state, update];
}
