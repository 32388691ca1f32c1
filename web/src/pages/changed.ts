/* changed: what was changed on the page of the settings is told to those who show what follows from it, as the audit log. */
import { useEffect } from "preact/hooks";

const watchers = new Set<() => void>();

export function tellChanged(): void {
  for (const watcher of watchers) watcher();
}

export function useChanged(watcher: () => void): void {
  useEffect(() => {
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
}
