/*
 * missing_names: lists the binaries that have addresses without names, with the causes and the
 * commands to run, and notifies the page when names arrive. It occupies a line that the page
 * reserves, and opens over the content below. It polls at once, then after a few seconds, later
 * less often, and at once when the page becomes visible.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { getJson, queryOf } from "../api/api.ts";
import type { Symbolization, Unnamed } from "../model/tree/flame.ts";
import {
  requestAll,
  byCause,
  idOf,
  join,
  joinStatus,
  type SymbolizationStatus,
} from "../model/symbols/symbolization.ts";
import { formatDate } from "../model/text/units.ts";
import { CopyField, Name, showMessage } from "../ui/kit.tsx";
import { addStyle } from "../ui/later.tsx";
import style from "./missing_names.css?text";

addStyle(style);

/** The waits between two polls, in milliseconds. */
const firstWait = 2_000;
const longestWait = 60_000;
const longestWaitForPending = 8_000;

const baseName = (path: string) => path.replace(/\/+$/, "").replace(/^.*\//, "");
const nameOf = ({ file, build_id }: Unnamed) =>
  baseName(file) || build_id.slice(0, 16) || "unknown";

/** Quoted for a shell if necessary. */
const quoted = (path: string) =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;

/**
 * The command to run on the machine that has the binaries; it names at most 20, so that it fits
 * into a command line. Binaries without a build id or an absolute path are omitted; FILE stands for
 * a path if none is left.
 */
function command(binaries: readonly Unnamed[]): string {
  const files = binaries
    .filter(({ build_id, file }) => build_id && file.startsWith("/"))
    .map(({ file }) => quoted(file));
  return (
    "perfolio debuginfo upload " +
    (files.length > 0 ? [...new Set(files)].slice(0, 20).join(" ") : "FILE")
  );
}

async function requestShares(
  shares: readonly string[],
  signal: AbortSignal,
): Promise<SymbolizationStatus> {
  const statuses = await Promise.all(
    shares.map((id) =>
      getJson<SymbolizationStatus>(
        `/api/v1/shares/${encodeURIComponent(id)}/symbolization`,
        signal,
      ),
    ),
  );
  return joinStatus(statuses);
}

/** For binaries with build ids; those without stay as they are. */
async function requestBinaries(
  { pending, missing, unlisted = 0 }: Symbolization,
  signal: AbortSignal,
): Promise<SymbolizationStatus> {
  const known = new Map([...pending, ...missing].map(({ build_id, file }) => [build_id, file]));
  const status = await requestAll([...known.keys()].filter(Boolean), (ids) =>
    getJson<SymbolizationStatus>("/api/v1/symbolization" + queryOf({ build_id: ids }), signal),
  );
  const named = <T extends Unnamed>(list: T[]) =>
    list.map((one) => ({ ...one, file: known.get(one.build_id) ?? one.file }));
  const others = missing.filter(({ build_id }) => !build_id);
  return {
    ...status,
    complete: status.complete && others.length === 0 && unlisted === 0,
    unlisted,
    pending: named(status.pending),
    missing: [...named(status.missing), ...others],
  };
}

const lackOf = ({ pending, missing }: Symbolization) => pending.length + missing.length;

/** The status known to the page, then the server's, polled until it is complete. */
function useSymbolization(
  known: Symbolization,
  shares: readonly string[],
  onNames: () => void,
): Symbolization {
  const [state, setState] = useState<Symbolization | null>(null);
  const latestOnNames = useRef(onNames);
  latestOnNames.current = onNames;
  const key = [...shares, ...[...known.pending, ...known.missing].map(idOf).sort()].join("\n");
  useEffect(() => {
    const abort = new AbortController();
    let last: SymbolizationStatus | null = null;
    let wait = firstWait;
    let timer = 0;
    const canCome =
      shares.length > 0 || [...known.pending, ...known.missing].some(({ build_id }) => build_id);
    setState(null);
    const take = (next: SymbolizationStatus) => {
      if (last ? last.generation !== next.generation : lackOf(next) < lackOf(known)) {
        latestOnNames.current();
        wait = firstWait;
      }
      last = next;
      setState(next);
    };
    const send = async () => {
      clearTimeout(timer);
      try {
        take(
          await (shares.length > 0
            ? requestShares(shares, abort.signal)
            : requestBinaries(known, abort.signal)),
        );
      } catch {
        // The next poll may succeed; until then the last known status stays visible.
      }
      if (abort.signal.aborted || last?.complete) return;
      timer = window.setTimeout(send, wait);
      wait = Math.min(
        wait * 1.5,
        last && last.pending.length > 0 ? longestWaitForPending : longestWait,
      );
    };
    const look = () => {
      if (document.visibilityState === "hidden") return clearTimeout(timer);
      wait = firstWait;
      if (!last?.complete) void send();
    };
    if (!canCome) return;
    void send();
    document.addEventListener("visibilitychange", look);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [key]);
  return state ?? known;
}

/** Closes the details when Escape is pressed or something outside of it, like a menu. */
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

/** "19:01", with the date if it is not today. */
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

/** A row for binaries with the same text, which lists them if there are several. */
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

/** A response contains at most some hundred binaries. */
const unlistedText = (count: number) =>
  `At least ${count} more ${count === 1 ? "binary is" : "binaries are"} not listed here and ` +
  "may lack names.";
const counted = (count: number) => `${count} ${count === 1 ? "binary" : "binaries"}`;

export interface MissingNamesProps {
  /** The known status of each profile shown; undefined if the server did not report it. */
  known: readonly (Symbolization | undefined)[];
  /** The shares to poll; without them, the team's binaries. */
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
    showMessage("New symbol names were loaded");
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
