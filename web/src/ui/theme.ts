/*
 * theme: the colours of the picture: dark or light as the system wants until the reader chooses, and stronger ones
 * (contrast) where the system asks for contrast or puts its own colours on all pages. These come in a chunk of their own.
 */
import { useEffect, useState } from "preact/hooks";
import { makePalette } from "../model/colour.ts";
import type { Look } from "../views/icicle_draw.ts";

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
      () => undefined, // the plain colours can be read too
    );
  return strengthen?.(plain, forced().matches) ?? plain;
}

/** Made, and kept up to date, from the first time on that it is asked for. */
function shownPalette(): Look {
  if (!palette)
    for (const wish of [system, contrast, forced]) wish().addEventListener("change", renew);
  return (palette ??= paletteNow());
}

function renew(): void {
  palette = paletteNow();
  changed.dispatchEvent(new Event("change"));
}

/** Switches to the other of light and dark. Where that is what the system wants, the choice is dropped. */
export function toggleTheme(): void {
  const dark = !isDarkNow();
  const followsSystem = dark === system().matches;
  if (followsSystem) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = dark ? "dark" : "light";
  try {
    if (followsSystem) localStorage.removeItem(storageKey);
    else localStorage.setItem(storageKey, dark ? "dark" : "light");
  } catch {
    // Forbidden storage: the choice lasts as long as the page.
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
