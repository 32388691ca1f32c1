/* use_keys: keys of the whole page, as long as nothing is typed and no dialog is open. */
import { useEffect, useRef } from "preact/hooks";
import { listKept, keepList } from "../model/kept_list.ts";
import { isTyping } from "../ui/kit.tsx";

/** Keys of one sign do nothing where the reader wants that: what dictates words, or a hand that shakes, would press them. */
export const areKeysOff = (): boolean => listKept("keys-off", () => true).length > 0;
export const setKeysOff = (isOff: boolean): boolean => keepList("keys-off", isOff ? [true] : [], 1);

/** Nobody else means this key: it is the page's. */
export const isPageKey = (event: KeyboardEvent): boolean =>
  !(
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.defaultPrevented ||
    isTyping(event.target) ||
    document.querySelector("dialog[open]") ||
    (event.key.length === 1 && areKeysOff())
  );

/** Ctrl+F goes to the page's search, from there to the browser's: a canvas holds no text that it would find. */
export function useFindKey(search: () => HTMLInputElement | null): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isFind =
        (event.ctrlKey || event.metaKey) &&
        !event.altKey &&
        !event.shiftKey &&
        event.key.toLowerCase() === "f";
      const field = search();
      if (
        !isFind ||
        !field ||
        document.activeElement === field ||
        document.querySelector("dialog[open]")
      )
        return;
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
      const action = latest.current[event.key];
      if (!action || !isPageKey(event)) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
