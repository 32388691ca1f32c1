/* search_box: the field for a regular expression, and its result. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lostScript } from "../../api/api.ts";
import type { Flame } from "../../model/tree/flame.ts";
import { countedAs } from "../../model/functions/functions.ts";
import type { Pattern } from "../../model/search/regex.ts";
import type { SearchResult } from "../../model/search/search.ts";
import { formatPercent } from "../../model/text/units.ts";
import { Icon } from "../../ui/icons.tsx";

export interface Searching {
  pattern: Pattern | null;
  error: string;
  result: SearchResult | null;
}

type Code = typeof import("../../model/search/search.ts");
let code: Code | null = null;
/** The code for expressions is loaded when there is an expression, or shortly before. */
const loadCode = async () => (code ??= await import("../../model/search/search.ts"));
const preload = () => void loadCode().catch(() => undefined);

/** null until it is loaded; the field shows the error if loading fails. */
export function useSearchCode(isNeeded: boolean): [Code | null, problem: string] {
  const [loaded, setLoaded] = useState(code);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!isNeeded || loaded) return;
    setProblem("");
    loadCode().then(
      (made) => setLoaded(made),
      async () =>
        setProblem((await lostScript()).detail || "Perfolio was updated. Reload the page."),
    );
  }, [isNeeded]);
  return [loaded, problem];
}

export function useSearch(code: Code | null, flame: Flame | null, text: string): Searching {
  return useMemo(() => {
    if (!text || !flame || !code) return { pattern: null, error: "", result: null };
    try {
      const pattern = code.compileSearch(text);
      return { pattern, error: "", result: code.search(flame, pattern) };
    } catch (error) {
      return {
        pattern: null,
        error: error instanceof Error ? error.message : "This is not a valid regular expression.",
        result: null,
      };
    }
  }, [code, flame, text]);
}

/** "12.5%"; for a comparison "40.0% → 12.5%". */
export function shareText(flame: Flame, { value, baseValue }: SearchResult): string {
  // Functions merged into "other" may match too.
  const shareOf = (part: number, total: number) => flame.bounds.part + formatPercent(part, total);
  const share = shareOf(value, flame.total);
  return flame.isDiff ? `${shareOf(baseValue, flame.baseTotal)} → ${share}` : share;
}

interface SearchBoxProps {
  text: string;
  flame: Flame | null;
  searching: Searching;
  onText: (text: string) => void;
  onNext: (step: 1 | -1) => void;
}

export function SearchBox({ text, flame, searching, onText, onNext }: SearchBoxProps) {
  const { error, result } = searching;
  const input = useRef<HTMLInputElement>(null);
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter") onNext(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      if (text) onText("");
      else input.current?.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class={`search ${error ? "wrong" : ""}`}>
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        id="search"
        value={text}
        placeholder="Search (regex)"
        aria-label="Search functions by regular expression"
        aria-describedby="search-result"
        aria-invalid={error !== ""}
        autocomplete="off"
        spellcheck={false}
        onFocus={preload}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={key}
      />
      <output id="search-result" class="search-result" aria-live="polite">
        {error ||
          (flame && result
            ? `${countedAs(flame, result.functionCount)} · ${shareText(flame, result)}`
            : "")}
      </output>
    </div>
  );
}
