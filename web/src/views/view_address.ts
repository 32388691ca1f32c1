/*
 * view_address: keeps the state of a view and the address bar equal: it follows back and forward,
 * and is the only module that writes the address. view_state.ts defines the form of the query.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import {
  formatState,
  parseState,
  stateVersion,
  type Update,
  type ViewState,
} from "../view_state.ts";

type How = "push" | "replace";

/** Browsers refuse more than one or two hundred changes in half a minute, some without an error. */
const retryMs = 1000;
const mostTries = 60;
let refused: { how: How; timer: number } | null = null;

function forgetRefused(): void {
  clearTimeout(refused?.timer);
  refused = null;
}

/**
 * A refused change is tried again. If another change comes first, that one becomes the history
 * entry.
 */
export function writeAddress(address: string, how: How, tries = mostTries): void {
  const step = refused?.how === "push" ? "push" : how;
  forgetRefused();
  const { href } = new URL(address, location.href);
  if (href === location.href.split("#")[0]) return;
  try {
    history[step === "push" ? "pushState" : "replaceState"](null, "", href);
  } catch {
    // Handled below, like a browser that refuses without an error.
  }
  if (location.href !== href && tries > 1)
    refused = {
      how: step,
      timer: window.setTimeout(() => writeAddress(address, step, tries - 1), retryMs),
    };
}

/**
 * Resets the view, for another file in the same page: the view of one file does not apply to the
 * next.
 */
export const forgetView = () => writeAddress(location.pathname, "replace");

/** The query of a link to the current view. */
export const viewQuery = () => formatState(parseState(location.search));

/**
 * The state in the address bar. Changes are written to it, and back and forward are followed.
 * initial: the state of an address without one.
 */
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
    // the visible parts of a sandwich's halves belong to the marked function
    const halves = "marked" in patch ? { above: null, below: null } : {};
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
