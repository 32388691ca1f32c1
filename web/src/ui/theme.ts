/*
 * theme: the colours of the canvas: dark or light by the system's setting until the reader chooses,
 * and stronger ones if the system requests contrast or forces its own colours (contrast.ts, a chunk
 * of its own).
 */
import { useEffect, useState } from "preact/hooks";
import { makePalette } from "../model/colours/colour.ts";
import type { Look } from "../views/icicle/icicle_draw.ts";

const storageKey = "perfolio:theme";
const changed = new EventTarget();
const queries = [
  "(prefers-color-scheme: dark)",
  "(prefers-contrast: more)",
  "(forced-colors: active)",
];
const [system, contrast, forced] = queries.map((query) => () => matchMedia(query));
let strengthen: typeof import("./contrast.ts").strengthen | undefined;
let palette: Look | undefined;

function isDarkNow(): boolean {
  const choice = document.documentElement.dataset.theme;
  return choice ? choice === "dark" : system().matches;
}

function paletteNow(): Look {
  const plain = makePalette(isDarkNow());
  if (!contrast().matches && !forced().matches) return plain;
  if (!strengthen)
    import("./contrast.ts").then(
      (chunk) => {
        strengthen = chunk.strengthen;
        renew();
      },
      () => undefined, // the plain colours are readable too
    );
  return strengthen?.(plain, forced().matches) ?? plain;
}

/** Created on first use and kept up to date. */
function shownPalette(): Look {
  if (!palette)
    for (const query of [system, contrast, forced]) query().addEventListener("change", renew);
  return (palette ??= paletteNow());
}

function renew(): void {
  palette = paletteNow();
  changed.dispatchEvent(new Event("change"));
}

/**
 * Switches between light and dark. If the result equals the system's setting, the stored choice is
 * removed.
 */
export function toggleTheme(): void {
  const dark = !isDarkNow();
  const followsSystem = dark === system().matches;
  if (followsSystem) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = dark ? "dark" : "light";
  try {
    if (followsSystem) localStorage.removeItem(storageKey);
    else localStorage.setItem(storageKey, dark ? "dark" : "light");
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
  renew();
}

export function usePalette(): Look {
  const [shown, setShown] = useState(shownPalette);
  useEffect(() => {
    const update = () => setShown(shownPalette);
    update();
    changed.addEventListener("change", update);
    return () => changed.removeEventListener("change", update);
  }, []);
  return shown;
}
