/* search_box: the field for a regular expression, and what it found. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lostScript } from "../api/api.ts";
import type { Flame } from "../model/flame.ts";
import { countedAs } from "../model/functions.ts";
import type { Pattern } from "../model/regex.ts";
import type { SearchResult } from "../model/search.ts";
import { formatPercent } from "../model/units.ts";
import { Icon } from "../ui/icons.tsx";

export interface Searching {
  pattern: Pattern | null;
  error: string;
  result: SearchResult | null;
}

type Code = typeof import("../model/search.ts");
let code: Code | null = null;
/** What reads expressions comes when there is one to read, or soon will be. */
const loadCode = async () => (code ??= await import("../model/search.ts"));
const preload = () => void loadCode().catch(() => undefined);

/** null until it is there; what kept it away is told in the field. */
export function useSearchCode(isWanted: boolean): [Code | null, problem: string] {
  const [loaded, setLoaded] = useState(code);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!isWanted || loaded) return;
    setProblem("");
    loadCode().then(
      (made) => setLoaded(made),
      async () =>
        setProblem((await lostScript()).detail || "Perfolio was updated. Reload the page."),
    );
  }, [isWanted]);
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

/** "12.5%"; of a comparison "40.0% → 12.5%". */
export function shareText(flame: Flame, { value, baseValue }: SearchResult): string {
  // What was merged into "other" may match too.
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
