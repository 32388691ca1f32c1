/* use_keys: keys of the whole page, inactive while text is typed or a dialog is open. */
import { useEffect, useRef } from "preact/hooks";
import { readStoredList, writeStoredList } from "../../model/storage/browser_storage.ts";
import { isTyping } from "../../ui/kit.tsx";

/**
 * Single-character keys are off if the reader disabled them: dictation software or a tremor could
 * press them.
 */
export const areSingleKeysOff = (): boolean => readStoredList("keys-off", () => true).length > 0;
export const setKeysOff = (isOff: boolean): boolean =>
  writeStoredList("keys-off", isOff ? [true] : [], 1);

/** Whether the key belongs to the page and not to another element. */
export const isPageKey = (event: KeyboardEvent): boolean =>
  !(
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.defaultPrevented ||
    isTyping(event.target) ||
    document.querySelector("dialog[open]") ||
    (event.key.length === 1 && areSingleKeysOff())
  );

/**
 * Ctrl+F focuses the page's search, because the browser's finds no text in a canvas. Pressed in
 * that field, it opens the browser's.
 */
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
