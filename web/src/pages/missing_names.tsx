/*
 * missing_names: which binaries of a share have addresses without names, why, and what to do; tells the page when names
 * have come. Asks again after a few seconds, later less often, and at once when the page is looked at again.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { getJson } from "../api.ts";
import { formatDate } from "../model/units.ts";
import { CopyField, say } from "../ui/kit.tsx";
import { addStyle } from "../ui/style.ts";
import sheetText from "./missing_names.css" with { type: "text" };

addStyle(sheetText);

interface Binary {
  /** Hexadecimal; "" where the profile has none. */
  build_id: string;
  file: string;
}

export interface Missing extends Binary {
  reason: string;
  next_retry: string | null;
}

export interface Symbolization {
  generation: number;
  complete: boolean;
  pending: Binary[];
  missing: Missing[];
}

const firstWait = 2_000;
const longestWait = 60_000;
const longestWaitForPending = 8_000;

const baseName = (path: string) => path.replace(/\/+$/, "").replace(/^.*\//, "");
const nameOf = ({ file, build_id }: Binary) => baseName(file) || build_id.slice(0, 16) || "unknown";

/** In the quotes of a shell where it needs them. */
const quoted = (path: string) => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** What to type where the binaries are: those without a build id are found by nobody. */
function command(binaries: readonly Binary[]): string {
  const files = binaries.filter(({ build_id, file }) => build_id && file.startsWith("/")).map(({ file }) => quoted(file));
  return `perfolio debuginfo upload ${files.length > 0 ? [...new Set(files)].slice(0, 20).join(" ") : "FILE"}`;
}

/** The state as the server tells it, asked again and again until it is complete. */
function useSymbolization(id: string, onNames: () => void): Symbolization | null {
  const [state, setState] = useState<Symbolization | null>(null);
  const told = useRef(onNames);
  told.current = onNames;
  useEffect(() => {
    const abort = new AbortController();
    let last: Symbolization | null = null;
    let wait = firstWait;
    let timer = 0;
    const take = (next: Symbolization) => {
      if (last && last.generation !== next.generation) {
        told.current();
        wait = firstWait;
      }
      last = next;
      setState(next);
    };
    const ask = async () => {
      clearTimeout(timer);
      try {
        take(await getJson<Symbolization>(`/api/v1/shares/${encodeURIComponent(id)}/symbolization`, abort.signal));
      } catch {
        // The next one may be answered: nothing that is shown gets wrong by waiting.
      }
      if (abort.signal.aborted || last?.complete) return;
      timer = window.setTimeout(ask, wait);
      wait = Math.min(wait * 1.5, last && last.pending.length > 0 ? longestWaitForPending : longestWait);
    };
    const look = () => {
      if (document.visibilityState === "hidden") return clearTimeout(timer);
      wait = firstWait;
      if (!last?.complete) void ask();
    };
    void ask();
    document.addEventListener("visibilitychange", look);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [id]);
  return state;
}

function Entry({ binary, children }: { binary: Binary; children: string }) {
  return (
    <li>
      <strong title={binary.file}>{nameOf(binary)}</strong> {children}
      {binary.build_id && <code title="Build id">{binary.build_id}</code>}
    </li>
  );
}

const counted = (count: number) => `${count} ${count === 1 ? "binary" : "binaries"}`;

export function MissingNames({ id, onNames }: { id: string; onNames: () => void }) {
  const state = useSymbolization(id, () => {
    say("Names have come");
    onNames();
  });
  if (!state || state.complete) return null;
  const { pending, missing } = state;
  const mayBeSent = missing.some(({ build_id }) => build_id);
  return (
    <details class="missing-names">
      <summary>
        {missing.length > 0 && `${counted(missing.length)} without names`}
        {missing.length > 0 && pending.length > 0 && ", "}
        {pending.length > 0 && `names of ${counted(pending.length)} are on their way`}
      </summary>
      <ul>
        {pending.map((binary) => (
          <Entry key={binary.build_id + binary.file} binary={binary}>is being looked up</Entry>
        ))}
        {missing.map((binary) => (
          <Entry key={binary.build_id + binary.file} binary={binary}>
            {binary.reason + (binary.next_retry ? `; tried again ${formatDate(binary.next_retry)}` : "")}
          </Entry>
        ))}
      </ul>
      {mayBeSent && (
        <>
          <p>Where these programs were built or are installed, with their debug information, run:</p>
          <CopyField text={command(missing)} what="Command" />
          <p>Only names and lines are sent. This page shows them as soon as they are here.</p>
        </>
      )}
    </details>
  );
}
