/*
 * missing_names: which binaries of what is shown have addresses without names, why, and what to do; tells the page when
 * names have come. It stands in a line that the page has kept for it, and opens over what is below. Asks again after a few seconds, later less often, and at once when the page is looked at again.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { getJson, queryOf } from "../api/api.ts";
import type { Symbolization, Unnamed } from "../model/flame.ts";
import { askAll, byCause, idOf, join, joinTold, type Told } from "../model/symbolization.ts";
import { formatDate } from "../model/units.ts";
import { CopyField, Name, say } from "../ui/kit.tsx";
import { addStyle } from "../ui/style.ts";
import style from "./missing_names.css?text";

addStyle(style);

const firstWait = 2_000;
const longestWait = 60_000;
const longestWaitForPending = 8_000;

const baseName = (path: string) => path.replace(/\/+$/, "").replace(/^.*\//, "");
const nameOf = ({ file, build_id }: Unnamed) =>
  baseName(file) || build_id.slice(0, 16) || "unknown";

/** In the quotes of a shell where it needs them. */
const quoted = (path: string) =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;

/** What to type where the binaries are: those without a build id are found by nobody. */
function command(binaries: readonly Unnamed[]): string {
  const files = binaries
    .filter(({ build_id, file }) => build_id && file.startsWith("/"))
    .map(({ file }) => quoted(file));
  return `perfolio debuginfo upload ${files.length > 0 ? [...new Set(files)].slice(0, 20).join(" ") : "FILE"}`;
}

async function askShares(shares: readonly string[], signal: AbortSignal): Promise<Told> {
  const told = await Promise.all(
    shares.map((id) =>
      getJson<Told>(`/api/v1/shares/${encodeURIComponent(id)}/symbolization`, signal),
    ),
  );
  return joinTold(told);
}

/** Of binaries that are known by their build ids; those without stay as they are. */
async function askBinaries(
  { pending, missing, unlisted = 0 }: Symbolization,
  signal: AbortSignal,
): Promise<Told> {
  const known = new Map([...pending, ...missing].map(({ build_id, file }) => [build_id, file]));
  const told = await askAll([...known.keys()].filter(Boolean), (ids) =>
    getJson<Told>("/api/v1/symbolization" + queryOf({ build_id: ids }), signal),
  );
  const named = <T extends Unnamed>(list: T[]) =>
    list.map((one) => ({ ...one, file: known.get(one.build_id) ?? one.file }));
  const others = missing.filter(({ build_id }) => !build_id);
  return {
    ...told,
    complete: told.complete && others.length === 0 && unlisted === 0,
    unlisted,
    pending: named(told.pending),
    missing: [...named(told.missing), ...others],
  };
}

const lackOf = ({ pending, missing }: Symbolization) => pending.length + missing.length;

/** What the page knew, and then as the server tells it, asked again and again until it is complete. */
function useSymbolization(
  known: Symbolization,
  shares: readonly string[],
  onNames: () => void,
): Symbolization {
  const [state, setState] = useState<Symbolization | null>(null);
  const told = useRef(onNames);
  told.current = onNames;
  const key = [...shares, ...[...known.pending, ...known.missing].map(idOf).sort()].join("\n");
  useEffect(() => {
    const abort = new AbortController();
    let last: Told | null = null;
    let wait = firstWait;
    let timer = 0;
    const canCome =
      shares.length > 0 || [...known.pending, ...known.missing].some(({ build_id }) => build_id);
    setState(null);
    const take = (next: Told) => {
      if (last ? last.generation !== next.generation : lackOf(next) < lackOf(known)) {
        told.current();
        wait = firstWait;
      }
      last = next;
      setState(next);
    };
    const ask = async () => {
      clearTimeout(timer);
      try {
        take(
          await (shares.length > 0
            ? askShares(shares, abort.signal)
            : askBinaries(known, abort.signal)),
        );
      } catch {
        // The next one may be answered: nothing that is shown gets wrong by waiting.
      }
      if (abort.signal.aborted || last?.complete) return;
      timer = window.setTimeout(ask, wait);
      wait = Math.min(
        wait * 1.5,
        last && last.pending.length > 0 ? longestWaitForPending : longestWait,
      );
    };
    const look = () => {
      if (document.visibilityState === "hidden") return clearTimeout(timer);
      wait = firstWait;
      if (!last?.complete) void ask();
    };
    if (!canCome) return;
    void ask();
    document.addEventListener("visibilitychange", look);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [key]);
  return state ?? known;
}

/** An overlay that is opened by its summary closes as menus do. */
function useClosing(element: { current: HTMLDetailsElement | null }): void {
  useEffect(() => {
    const close = (event: Event) => {
      const { current } = element;
      if (!current?.open) return;
      if (
        event instanceof KeyboardEvent
          ? event.key !== "Escape"
          : current.contains(event.target as Node)
      )
        return;
      event.stopPropagation();
      current.open = false;
      if (event instanceof KeyboardEvent) current.querySelector("summary")?.focus();
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", close, true);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", close, true);
    };
  }, []);
}

/** "19:01", or with its date where that is not today's. */
function formatSoon(time: string): string {
  const text = formatDate(time);
  return text.split(", ")[0] === formatDate(Date.now()).split(", ")[0] ? text.slice(-5) : text;
}

const nextTry = (time: string | null) =>
  time ? `; next try ${Date.parse(time) > Date.now() ? formatSoon(time) : "in a moment"}` : "";

function Entry({ binary, children }: { binary: Unnamed; children?: string }) {
  return (
    <li>
      <strong title={binary.file}>
        <Name text={nameOf(binary)} />
      </strong>{" "}
      {children}
      {binary.build_id && <code title="Build id">{binary.build_id}</code>}
    </li>
  );
}

/** Binaries with one text for all of them: a row, which lists them where they are several. */
function Group({
  binaries,
  text,
}: {
  binaries: readonly Unnamed[];
  text: (are: string) => string;
}) {
  if (binaries.length === 1) return <Entry binary={binaries[0]}>{text("is")}</Entry>;
  return (
    <li>
      <strong>{counted(binaries.length)}</strong> {text("are")}
      <details>
        <summary>
          <Name text={[...new Set(binaries.map(nameOf))].slice(0, 4).join(", ")} />
          {binaries.length > 4 && ", …"}
        </summary>
        <ul>
          {binaries.map((binary) => (
            <Entry key={idOf(binary)} binary={binary} />
          ))}
        </ul>
      </details>
    </li>
  );
}

/** An answer has room for some hundred binaries. */
const unlistedText = (count: number) =>
  `At least ${count} more ${count === 1 ? "binary is" : "binaries are"} not listed here and may lack names.`;
const counted = (count: number) => `${count} ${count === 1 ? "binary" : "binaries"}`;

export interface MissingNamesProps {
  /** Of each profile that is shown; those that do not tell it are left out. */
  known: readonly (Symbolization | undefined)[];
  /** Shares to be asked again; without them the team's binaries are. */
  shares?: readonly string[];
  onNames: () => void;
}

export function MissingNames({ known, shares = [], onNames }: MissingNamesProps) {
  const first = join(known.flatMap((one) => one ?? []));
  const {
    complete,
    pending,
    missing,
    unlisted = 0,
  } = useSymbolization(first, shares, () => {
    say("New symbol names were loaded");
    onNames();
  });
  const element = useRef<HTMLDetailsElement>(null);
  useClosing(element);
  if (complete) return <span class="names-came">All binaries have names.</span>;
  if (pending.length + missing.length === 0)
    return <span class="names-came">{unlistedText(unlisted)} All other binaries have names.</span>;
  const mayBeSent = missing.some(({ build_id }) => build_id);
  return (
    <details class="missing-names" ref={element}>
      <summary>
        {missing.length > 0 && `${counted(missing.length)} without names`}
        {missing.length > 0 && pending.length > 0 && ", "}
        {pending.length > 0 && `names of ${counted(pending.length)} are being looked up`}
      </summary>
      <div>
        <ul>
          {pending.length > 0 && (
            <Group binaries={pending} text={(are) => `${are} being looked up`} />
          )}
          {byCause(missing).map(({ reason, nextRetry, binaries }) => (
            <Group key={reason} binaries={binaries} text={() => reason + nextTry(nextRetry)} />
          ))}
        </ul>
        {unlisted > 0 && <p>{unlistedText(unlisted)}</p>}
        {mayBeSent && (
          <>
            <p>Run this where these programs were built or are installed with debug information:</p>
            <CopyField text={command(missing)} what="Command" />
            <p>
              It uploads only function names and line numbers. This page shows them as soon as they
              arrive.
            </p>
          </>
        )}
      </div>
    </details>
  );
}
