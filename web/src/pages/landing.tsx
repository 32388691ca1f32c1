/* landing: drop, paste or choose a profile; it becomes a link. */
import { addStyle } from "../ui/style.ts";
import style from "./pages.css?text";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, type Session, type ShareSettings } from "../api.ts";
import { listRemembered, type Remembered } from "../model/remembered.ts";
import { formatAgo, formatBytes, formatValue } from "../model/units.ts";
import { startOver, unfinishedBytes } from "../upload.ts";
import { asProblem, Button, CopyField, ErrorLine, IconButton, say, useTitle } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import { isSignedIn, Shell, signInLink } from "../ui/shell.tsx";
import { nothingRedacted, type Redaction } from "../local/wish.ts";
import { commandsFor, Trust } from "./commands.tsx";
import { takeEarly } from "./early_drop.ts";
import { nameAmong } from "./name_among.ts";
import { Preview, type Hopeless } from "./preview.tsx";
import { RedactionForm, useRedacted } from "./redaction_form.tsx";
import { Sending, type Progress, type Sent } from "./sending.ts";
import { cleanSettings, SettingsForm } from "./settings_form.tsx";
import { forgetView, viewQuery } from "../views/view_address.ts";

addStyle(style);

type Together = "single" | "compare" | "merge";

/** What came of sending: the shares that were made, and the link that shows what was wanted. */
interface Outcome {
  together: Together;
  shares: Sent[];
  url: string;
  markdown: string;
  expiresAt: string | null;
}

/* ---- the steps ---- */

function DropZone({ onFiles, limit }: { onFiles: (files: File[]) => void; limit?: number }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="drop">
      <input
        ref={input}
        class="unseen"
        id="file"
        type="file"
        multiple
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          if (files.length) onFiles(files);
        }}
      />
      <label for="file">
        <span class="drop-icon"><Icon name="upload" /></span>
        <strong>Drop a profile here</strong>
        <span>
          or <u>choose a file</u>, or paste one with <kbd>Ctrl</kbd> <kbd>V</kbd>
        </span>
        <span class="drop-formats">
          pprof · folded stacks · perf script · Chrome .cpuprofile · speedscope{limit ? ` · up to ${formatBytes(limit)}` : ""}
        </span>
      </label>
    </div>
  );
}

function FileList({ files, onRemove }: { files: File[]; onRemove: (index: number) => void }) {
  return (
    <ul class="files">
      {files.map((file, i) => (
        <li key={file.name + i}>
          <Icon name="file" />
          <span class="file-name">{nameAmong(files, i)}</span>
          <em>{formatBytes(file.size)}</em>
          <IconButton icon="close" label={`Remove ${nameAmong(files, i)}`} onClick={() => onRemove(i)} />
        </li>
      ))}
    </ul>
  );
}

/** So long ago the rate looks back. */
const rateMs = 10_000;

/** Bytes a second lately; 0 until that can be told. */
function useRate({ sent, label }: Progress): number {
  const seen = useRef<{ label: string; marks: { at: number; sent: number }[] }>({ label, marks: [] });
  if (seen.current.label !== label) seen.current = { label, marks: [] };
  const { marks } = seen.current;
  const now = performance.now();
  // The first mark that says something stands where the upload began, or goes on.
  if (marks.length === 0 || marks[marks.length - 1].sent !== sent) marks.push({ at: now, sent });
  while (marks.length > 2 && marks[0].at < now - rateMs) marks.shift();
  const [first, last] = [marks[0], marks[marks.length - 1]];
  return last.at - first.at < 500 ? 0 : ((last.sent - first.sent) / (last.at - first.at)) * 1000;
}

function progressText({ sent, total, waiting }: Progress, rate: number): string {
  if (waiting) return waiting;
  if (sent >= total) return "reading it…";
  const done = `${formatBytes(sent)} of ${formatBytes(total)}`;
  return rate > 0 ? `${done} · ${formatBytes(rate)}/s · ${formatValue(Math.ceil((total - sent) / rate), "s")} left` : done;
}

function ProgressBar({ progress, isCancelled, onCancel }: { progress: Progress; isCancelled: boolean; onCancel: () => void }) {
  const isSent = progress.sent >= progress.total;
  const rate = useRate(progress);
  const cancel = useRef<HTMLDivElement>(null);
  useEffect(() => cancel.current?.querySelector("button")?.focus(), []);
  return (
    <div class="progress" ref={cancel}>
      <p>
        <span class="file-name">{progress.label}</span>
        <em>{isCancelled ? "cancelling…" : progressText(progress, rate)}</em>
      </p>
      <progress max={progress.total || 1} value={isSent ? undefined : progress.sent} aria-label="Upload" />
      <Button look="quiet" onClick={onCancel}>Cancel</Button>
    </div>
  );
}

/** A file of which the server has a part, from an upload that was cut off. */
function Continued({ file, name }: { file: File; name: string }) {
  const [bytes, setBytes] = useState(0);
  useEffect(() => {
    let isLeft = false;
    setBytes(0);
    unfinishedBytes(file).then((found) => !isLeft && setBytes(found), () => undefined);
    return () => void (isLeft = true);
  }, [file]);
  if (bytes === 0) return null;
  const anew = () => {
    setBytes(0);
    void startOver(file);
  };
  return (
    <p class="continued" role="status">
      <span>
        {name}: {formatBytes(bytes)} of {formatBytes(file.size)} are uploaded already, and it goes on from there.
      </span>
      <Button look="quiet" onClick={anew}>Start over</Button>
    </p>
  );
}

interface ReadyProps {
  files: File[];
  wish: Redaction;
  redactionProblem: Problem | null;
  onWish: (wish: Redaction) => void;
  session: Session | null;
  /** What of it the preview knows to be refused. */
  hopeless: Hopeless;
  onFiles: (files: File[]) => void;
  onSent: (outcome: Outcome) => void;
  /** Counts how often the next step was to be to send them. */
  readyCount: number;
}

/** Within square brackets of Markdown. */
const inBrackets = (text: string) => text.replace(/[\\[\]]/g, "\\$&");

function outcomeOf(together: Together, shares: Sent[]): Outcome {
  const [first, second] = shares.map(({ created }) => created);
  if (together !== "compare") return { together, shares, url: first.url, markdown: first.markdown, expiresAt: first.expires_at };
  const url = `${location.origin}/d/${first.id}..${second.id}`;
  const name = shares.map(({ title }) => inBrackets(title)).join(" → ");
  return { together, shares, url, markdown: `[${name}](${url})`, expiresAt: first.expires_at };
}

function Ready({ files, wish, redactionProblem, onWish, session, hopeless, onFiles, onSent, readyCount }: ReadyProps) {
  const [isRedactionOpen, setRedactionOpen] = useState(false);
  const [settings, setSettings] = useState<ShareSettings>({ visibility: "unlisted" });
  const [progress, setProgress] = useState<Progress | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const [abort, setAbort] = useState<AbortController | null>(null);
  const [isCancelled, setCancelled] = useState(false);
  const sending = useRef(new Sending()).current;
  const form = useRef<HTMLFormElement>(null);
  const isSending = progress !== null;
  useEffect(() => {
    if (!isSending) form.current?.querySelector<HTMLButtonElement>("button[type=submit]")?.focus();
  }, [isSending, readyCount]);
  useEffect(() => void sending.takeBack(sending.files.filter((file) => !files.includes(file))), [files]);
  useEffect(() => () => void sending.takeBack(), []);

  const send = async (together: Together) => {
    setError(null);
    setCancelled(false);
    const cancelling = new AbortController();
    setAbort(cancelling);
    try {
      const clean = cleanSettings(settings);
      let shares = await sending.sendAll(files, wish, clean, setProgress, cancelling.signal);
      if (together === "merge") {
        setProgress({ sent: 1, total: 1, label: "Merging" });
        shares = [await sending.merge(shares, clean, cancelling.signal), ...shares];
      }
      sending.finish();
      onSent(outcomeOf(together, shares));
    } catch (caught) {
      if (!(caught instanceof DOMException && caught.name === "AbortError")) setError(asProblem(caught));
      else if (sending.files.length > 0) {
        const left = await sending.takeBack();
        if (left.length === 0) say("Cancelled. What had been sent is deleted.");
        else setError(new Problem(0, "", "", `Cancelled, but the server did not delete ${left.map(({ title }) => title).join(", ")}. The list “Shared from this browser” on the first page deletes it.`, "", null));
      }
      setProgress(null);
    }
  };

  if (progress)
    return (
      <section class="card ready">
        <ProgressBar progress={progress} isCancelled={isCancelled} onCancel={() => (setCancelled(true), abort?.abort())} />
      </section>
    );
  const first: Together = files.length === 1 ? "single" : files.length === 2 ? "compare" : "merge";
  /** One file costs nobody anything to try; of two, the other would be left on the server without what was asked for. */
  const isDoubtful = first === "single" && hopeless === "file";
  return (
    <section class="card ready" aria-label="Share settings">
      <FileList files={files} onRemove={(index) => onFiles(files.filter((_, i) => i !== index))} />
      {files.map((file, i) => (
        <Continued key={i} file={file} name={nameAmong(files, i)} />
      ))}
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          void send(first);
        }}
      >
        <SettingsForm settings={settings} hasTeam={isSignedIn(session)} onChange={setSettings} />
        <details class="redact" onToggle={(event) => setRedactionOpen(isRedactionOpen || event.currentTarget.open)}>
          <summary>Redact: leave something out before it is sent</summary>
          {isRedactionOpen && <RedactionForm files={files} wish={wish} problem={redactionProblem} onChange={onWish} />}
        </details>
        <div class="ready-errors">
          <ErrorLine error={error} />
          {error && sending.files.length > 0 && (
            <p class="hint" role="status">
              {files.flatMap((file, i) => (sending.files.includes(file) ? nameAmong(files, i) : [])).join(", ")} {sending.files.length > 1 ? "are" : "is"} on the server already, and not sent again when you
              try again. Cancel deletes {sending.files.length > 1 ? "them" : "it"}.
            </p>
          )}
        </div>
        {isDoubtful && (
          <p class="hint" role="status">
            As far as this browser can tell, the server refuses this file: below it says why. The server has the last word, so you can send it all the same.
          </p>
        )}
        <div class="actions">
          <a class="button quiet to-preview" href="#preview"><span>See it below</span></a>
          <Button look="quiet" onClick={() => onFiles([])}>Cancel</Button>
          {files.length === 2 && <Button disabled={hopeless === "file"} onClick={() => void send("merge")}>Merge into one</Button>}
          <Button look={isDoubtful ? undefined : "primary"} type="submit" disabled={first === "compare" && hopeless !== ""} icon={first === "compare" ? "compare" : "upload"}>
            {first === "single" ? "Create link" : first === "compare" ? "Compare the two" : `Merge ${files.length} into one`}
          </Button>
        </div>
      </form>
    </section>
  );
}

/** The link is to what the preview showed. */
function Done({ outcome, query, onAgain }: { outcome: Outcome; query: string; onAgain: () => void }) {
  const { together, shares, url, markdown, expiresAt } = outcome;
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => link.current?.focus(), []);
  const isOne = shares.length === 1;
  return (
    <section class="card done" aria-label="The link">
      <h2>
        <Icon name="check" /> Your link is ready
      </h2>
      <CopyField text={url + query} what="Link" />
      <div class="actions start">
        <a class="button primary" href={url + query} ref={link}>
          <span>{together === "compare" ? "Open the comparison" : "Open the profile"}</span>
        </a>
        <Button look="quiet" onClick={onAgain}>Share another</Button>
      </div>
      <details>
        <summary>Markdown, for a bug report</summary>
        <CopyField text={markdown} what="Markdown" />
      </details>
      <details>
        <summary>{isOne ? "Delete link, shown only now" : "Delete links, shown only now"}</summary>
        <p class="hint">
          {isOne ? "Whoever has it can delete the profile." : `Each deletes one of the ${shares.length} profiles that were shared.`} This browser remembers{" "}
          {isOne ? "it" : "them"} too.
          {expiresAt ? ` Without ${isOne ? "it the profile expires" : "them the profiles expire"} ${formatAgo(expiresAt)}.` : ""}
        </p>
        {shares.map(({ created, title }) => (
          <div key={created.id}>
            {!isOne && <p class="file-name">{title}</p>}
            <CopyField text={created.delete_url} what={isOne ? "Delete link" : `Delete link of ${title}`} isSecret />
          </div>
        ))}
      </details>
    </section>
  );
}

/* ---- around it ---- */

/** A picture of what it is about: rows of an icicle, drawn in. */
function HeroPicture() {
  const rows: [number, number, number][][] = [
    [[0, 100, 1]],
    [[0, 61.4, 2], [61.6, 38.4, 6]],
    [[0, 44.4, 3], [44.6, 16.8, 2], [61.6, 22.4, 6], [84.2, 15.8, 5]],
    [[0, 26.4, 4], [26.6, 17.8, 3], [44.6, 9, 7], [61.6, 14, 5], [75.8, 5.2, 2], [84.2, 8, 6]],
    [[0, 17.4, 4], [17.6, 8.8, 2], [26.6, 12, 3], [38.8, 3, 7], [61.6, 9, 7], [84.2, 2.6, 3]],
    [[0, 11, 1], [11.2, 3.4, 3], [17.6, 4.4, 5], [26.6, 6, 2], [61.6, 2.8, 4]],
    [[0, 5.5, 3], [26.6, 3, 4]],
  ];
  return (
    <svg class="hero-picture" viewBox="0 0 100 34.5" preserveAspectRatio="none" aria-hidden="true">
      {rows.map((row, depth) => (
        <g class={`hero-row r${depth}`} key={depth}>
          {row.map(([x, width, tone]) => (
            <rect key={x} class={`t${tone}`} x={x} y={depth * 5} width={width} height="4.5" />
          ))}
        </g>
      ))}
    </svg>
  );
}

function Recent({ list }: { list: Remembered[] }) {
  if (list.length === 0) return null;
  return (
    <section class="recent" aria-labelledby="recent-title">
      <h2 id="recent-title">Shared from this browser</h2>
      <ul>
        {list.slice(0, 8).map((entry) => (
          <li key={entry.id}>
            <a href={`/p/${entry.id}`}>{entry.title || entry.id}</a>
            <em>{formatAgo(entry.createdAt)}</em>
            <a class="icon-button" href={`/p/${entry.id}/delete#${encodeURIComponent(entry.deleteToken)}`} aria-label={`Delete ${entry.title || entry.id}`} title="Delete">
              <Icon name="trash" />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Ways({ session }: { session: Session }) {
  const line = commandsFor(session, location.origin);
  return (
    <section class="ways" aria-label="From a terminal">
      {line.trust && (
        <div class="whole">
          <h2>First, once: trust this server’s certificate</h2>
          <Trust line={line.trust} />
        </div>
      )}
      <div>
        <h2>From a terminal</h2>
        <p>
          One line in, one link out. It fits in a CI job as well as in a bug report.
          {(!line.trust || line.needsToken) && <> First, once: <code>{line.login}</code></>}
        </p>
        <CopyField what="Command" text={line.perfolio("push cpu.pb.gz")} />
      </div>
      <div>
        <h2>With nothing but curl</h2>
        <p>
          The answer is JSON; <code>url</code> is the link.
          {line.needsToken && (
            <>
              {" "}
              <code>PERFOLIO_TOKEN</code> must hold <a href="/settings#tokens">a token from the settings</a> that may share.
            </>
          )}
        </p>
        <CopyField what="Command" text={line.curl(`--data-binary @cpu.pb.gz ${location.origin}/api/v1/shares`)} />
      </div>
      <div>
        <h2>Before and after</h2>
        <p>Drop two files together, or join two links, and see what changed.</p>
        <CopyField what="Command" text={line.perfolio("diff before.pb.gz after.pb.gz")} />
      </div>
    </section>
  );
}

/** Files that are dropped anywhere on the page or pasted; text counts as a file too. */
function useIncoming(onFiles: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(false);
      if (event.dataTransfer.files.length) latest.current([...event.dataTransfer.files]);
    };
    const paste = (event: ClipboardEvent) => {
      if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
      const files = [...(event.clipboardData?.files ?? [])];
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (files.length) latest.current(files);
      else if (text.includes("\n") || text.startsWith("{") || /\S[ \t]+[\d.]+$/.test(text.trim())) latest.current([new File([text], "pasted.txt", { type: "text/plain" })]);
      else if (text.trim()) say("That is too short for a profile");
      else return;
      event.preventDefault();
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    addEventListener("paste", paste);
    const early = takeEarly();
    if (early.length) latest.current(early);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
      removeEventListener("paste", paste);
    };
  }, []);
  return isOver;
}

const none: File[] = [];

export function LandingPage({ session }: { session: Session | null }) {
  const [files, setFiles] = useState<File[]>([]);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [hopeless, setHopeless] = useState<Hopeless>("");
  const [wish, setWish] = useState(nothingRedacted);
  /** More are merged, which is not shown before. */
  const previewed = files.length > 2 ? none : files;
  const { shown, problem: redactionProblem } = useRedacted(previewed, wish);
  useTitle("");
  const [readyCount, setReadyCount] = useState(0);
  const lastFiles = useRef<readonly File[]>([]);
  /** What was to be left out holds for files that are added, until one starts anew; a view is of its files. */
  const chooseFiles = (chosen: File[]) => {
    const last = lastFiles.current;
    const isSwapped = last.length === chosen.length && last.every((file) => chosen.includes(file));
    if (last.length > 0 && !isSwapped) forgetView();
    if (chosen.length) lastFiles.current = chosen;
    setFiles(chosen);
    setHopeless("");
    if (chosen.length === 0) setWish(nothingRedacted);
  };
  const isOver = useIncoming((incoming) => {
    if (outcome) setWish(nothingRedacted);
    chooseFiles(outcome ? incoming : [...files, ...incoming]);
    setOutcome(null);
  });
  const mustSignIn = session !== null && !session.anonymous_sharing && !isSignedIn(session);
  const isReader = isSignedIn(session) && !session?.scopes.includes("share");
  const isChosen = !outcome && previewed.length > 0;
  return (
    <Shell session={session}>
      <div class={`landing ${isOver ? "over" : ""}`}>
        <section class={`hero ${isChosen ? "chosen" : ""}`}>
          <HeroPicture />
          <div class={`hero-text ${isChosen ? "unseen" : ""}`}>
            <h1>
              A profile
              <br />
              becomes a link.
            </h1>
            <p>
              {mustSignIn
                ? "Sign in to share one here. Without that you can look at yours: dropped on this page, or pasted, it is read in your browser and sent nowhere."
                : "Drop a profile, get a flame graph that anyone with the link can read. The file is kept byte for byte, and deleted when you say."}
            </p>
          </div>
          {outcome ? (
            <Done outcome={outcome} query={outcome.together === "merge" ? "" : viewQuery()} onAgain={() => (setOutcome(null), chooseFiles([]))} />
          ) : mustSignIn ? (
            <section class="card">
              <h2>Sign in to share</h2>
              <p>This server takes profiles from its teams only.</p>
              <div class="actions start"><a class="button primary" href={signInLink()}><span>Sign in</span></a></div>
            </section>
          ) : isReader ? (
            <section class="card">
              <h2>You can look, not share</h2>
              <p>
                Your role in {session?.tenant?.name} is {session?.role}, which may see the team’s profiles. To share your own, ask an owner of the team
                to make you a member.
              </p>
              <div class="actions start"><a class="button primary" href="/shares"><span>The team’s profiles</span></a></div>
            </section>
          ) : files.length > 0 ? (
            <Ready files={files} wish={wish} redactionProblem={redactionProblem} onWish={setWish} session={session} hopeless={hopeless} onFiles={chooseFiles} onSent={setOutcome} readyCount={readyCount} />
          ) : (
            <DropZone onFiles={chooseFiles} limit={session?.limits.max_upload_bytes} />
          )}
        </section>
        {!outcome && shown && shown.length > 0 && (
          <Preview
            key={shown.map(({ name, lastModified, size }) => name + lastModified + size).join("\n")}
            files={shown}
            isRedacted={shown !== files}
            onFiles={chooseFiles}
            onRemove={(index) => {
              chooseFiles(files.filter((_, i) => i !== index));
              setReadyCount(readyCount + 1); // what was pressed to get here is gone
            }}
            onSwap={() => chooseFiles([files[1], files[0]])}
            onHopeless={setHopeless}
          />
        )}
        <Recent list={outcome || files.length ? [] : listRemembered()} />
        {files.length === 0 && session && <Ways session={session} />}
      </div>
    </Shell>
  );
}
