/* use_keys: keys of the whole page, as long as nothing is typed and no dialog is open. */
import { useEffect, useRef } from "preact/hooks";
import { isTyping } from "../ui/kit.tsx";

/** Ctrl+F goes to the page's search, from there to the browser's: a canvas holds no text that it would find. */
export function useFindKey(search: () => HTMLInputElement | null): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isFind = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "f";
      const field = search();
      if (!isFind || !field || document.activeElement === field || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      field.focus();
      field.select();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

export function useKeys(actions: Record<string, () => void>): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
      const action = latest.current[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
