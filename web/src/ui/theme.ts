/* theme: dark or light: the system's choice until the reader makes one. */
import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";
const storageKey = "perfolio:theme";
const system = () => matchMedia("(prefers-color-scheme: dark)");
const changed = new EventTarget();

export function chosenTheme(): Theme {
  const value = document.documentElement.dataset.theme;
  return value === "light" || value === "dark" ? value : "system";
}

export function isDarkNow(): boolean {
  const choice = chosenTheme();
  return choice === "system" ? system().matches : choice === "dark";
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
  changed.dispatchEvent(new Event("change"));
}

export function useIsDark(): boolean {
  const [isDark, setDark] = useState(isDarkNow);
  useEffect(() => {
    const update = () => setDark(isDarkNow());
    const query = system();
    query.addEventListener("change", update);
    changed.addEventListener("change", update);
    return () => {
      query.removeEventListener("change", update);
      changed.removeEventListener("change", update);
    };
  }, []);
  return isDark;
}
