/* landing: drop, paste or choose a profile; it becomes a link. */
import { addStyle } from "../ui/style.ts";
import style from "./pages.css?text";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, type Created, type Session, type ShareSettings } from "../api.ts";
import { listRemembered, remember, type Remembered } from "../model/remembered.ts";
import { formatAgo, formatBytes, formatValue } from "../model/units.ts";
import { mergeShares, startOver, unfinishedBytes, uploadProfile } from "../upload.ts";
import { asProblem, Button, CopyField, ErrorLine, IconButton, say, useTitle } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import { isSignedIn, Shell, signInLink } from "../ui/shell.tsx";
import { nothingRedacted, type Redaction } from "../local/wish.ts";
import { commandsFor, Trust } from "./commands.tsx";
import { Preview } from "./preview.tsx";
import { redactedFile, RedactionForm, useRedacted } from "./redaction_form.tsx";
import { cleanSettings, SettingsForm } from "./settings_form.tsx";
import { forgetView, viewQuery } from "../views/viewer.tsx";

addStyle(style);

type Together = "single" | "compare" | "merge";

interface Progress {
  sent: number;
  total: number;
  label: string;
}

/* ---- sending ---- */

function keep(created: Created, title: string): void {
  remember({ id: created.id, title, url: created.url, deleteToken: created.delete_token, createdAt: Date.now() });
}

/** Shares all files, one after another; the answers in their order. */
async function sendAll(files: File[], wish: Redaction, settings: ShareSettings, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Created[]> {
  const created: Created[] = [];
  for (const [i, chosen] of files.entries()) {
    const label = files.length > 1 ? `${i + 1} of ${files.length}: ${chosen.name}` : chosen.name;
    onProgress({ sent: 0, total: chosen.size, label });
    const file = await redactedFile(chosen, wish);
    const own: ShareSettings = { ...settings, filename: file.name };
    if (files.length > 1) delete own.title;
    const answer = await uploadProfile(file, {
      settings: own,
      signal,
      onProgress: (sent, total) => onProgress({ sent, total, label }),
    });
    keep(answer, own.title || file.name);
    created.push(answer);
  }
  return created;
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
          <span class="file-name">{file.name}</span>
          <em>{formatBytes(file.size)}</em>
          <IconButton icon="close" label={`Remove ${file.name}`} onClick={() => onRemove(i)} />
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

function progressText({ sent, total }: Progress, rate: number): string {
  if (sent >= total) return "reading it…";
  const done = `${formatBytes(sent)} of ${formatBytes(total)}`;
  return rate > 0 ? `${done} · ${formatBytes(rate)}/s · ${formatValue(Math.ceil((total - sent) / rate), "s")} left` : done;
}

function ProgressBar({ progress, onCancel }: { progress: Progress; onCancel: () => void }) {
  const isSent = progress.sent >= progress.total;
  const rate = useRate(progress);
  return (
    <div class="progress">
      <p>
        <span class="file-name">{progress.label}</span>
        <em>{progressText(progress, rate)}</em>
      </p>
      <progress max={progress.total || 1} value={isSent ? undefined : progress.sent} aria-label="Upload" />
      <Button look="quiet" onClick={onCancel}>Cancel</Button>
    </div>
  );
}

/** A file of which the server has a part, from an upload that was cut off. */
function Continued({ file }: { file: File }) {
  const [bytes, setBytes] = useState(0);
  useEffect(() => {
    let isLeft = false;
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
        {file.name}: {formatBytes(bytes)} of {formatBytes(file.size)} are uploaded already, and it goes on from there.
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
  onFiles: (files: File[]) => void;
  onCreated: (created: Created, together: Together) => void;
}

function Ready({ files, wish, redactionProblem, onWish, session, onFiles, onCreated }: ReadyProps) {
  const [isRedactionOpen, setRedactionOpen] = useState(false);
  const [settings, setSettings] = useState<ShareSettings>({ visibility: "unlisted" });
  const [progress, setProgress] = useState<Progress | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const abort = useRef<AbortController | null>(null);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLButtonElement>("button[type=submit]")?.focus(), []);

  const send = async (together: Together) => {
    setError(null);
    abort.current = new AbortController();
    try {
      const clean = cleanSettings(settings);
      const created = await sendAll(files, wish, clean, setProgress, abort.current.signal);
      if (together === "compare") return location.assign(`/d/${created[0].id}..${created[1].id}${viewQuery()}`);
      if (together === "single") return onCreated(created[0], together);
      setProgress({ sent: 1, total: 1, label: "merging" });
      const merged = await mergeShares(created.map((one) => one.id), clean);
      keep(merged, clean.title || `Merge of ${created.length} profiles`);
      onCreated(merged, together);
    } catch (caught) {
      setProgress(null);
      if (!(caught instanceof DOMException && caught.name === "AbortError")) setError(asProblem(caught));
    }
  };

  if (progress)
    return (
      <section class="card ready">
        <ProgressBar progress={progress} onCancel={() => abort.current?.abort()} />
      </section>
    );
  const first: Together = files.length === 1 ? "single" : files.length === 2 ? "compare" : "merge";
  return (
    <section class="card ready" aria-label="Share settings">
      <FileList files={files} onRemove={(index) => onFiles(files.filter((_, i) => i !== index))} />
      {files.map((file) => (
        <Continued key={file.name + file.size} file={file} />
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
          <summary>Leave something out before it is sent</summary>
          {isRedactionOpen && <RedactionForm files={files} wish={wish} problem={redactionProblem} onChange={onWish} />}
        </details>
        <ErrorLine error={error} />
        <div class="actions">
          <Button look="quiet" onClick={() => onFiles([])}>Cancel</Button>
          {files.length === 2 && <Button onClick={() => void send("merge")}>Merge into one</Button>}
          <Button look="primary" type="submit" icon={first === "compare" ? "compare" : "upload"}>
            {first === "single" ? "Create link" : first === "compare" ? "Compare the two" : `Merge ${files.length} into one`}
          </Button>
        </div>
      </form>
    </section>
  );
}

/** The link is to what the preview showed. */
function Done({ created, query, onAgain }: { created: Created; query: string; onAgain: () => void }) {
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => link.current?.focus(), []);
  return (
    <section class="card done" aria-label="The link">
      <h2>
        <Icon name="check" /> Your link is ready
      </h2>
      <CopyField text={created.url + query} what="Link" />
      <div class="actions start">
        <a class="button primary" href={created.url + query} ref={link}>
          <span>Open the profile</span>
        </a>
        <Button look="quiet" onClick={onAgain}>Share another</Button>
      </div>
      <details>
        <summary>Markdown, for a bug report</summary>
        <CopyField text={created.markdown} what="Markdown" />
      </details>
      <details>
        <summary>Delete link, shown only now</summary>
        <p class="hint">
          Whoever has it can delete the profile. This browser remembers it too.
          {created.expires_at ? ` Without it the profile expires ${formatAgo(created.expires_at)}.` : ""}
        </p>
        <CopyField text={created.delete_url} what="Delete link" isSecret />
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
          <h2>Once</h2>
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
  const [created, setCreated] = useState<Created | null>(null);
  const [wish, setWish] = useState(nothingRedacted);
  /** More are merged, which is not shown before. */
  const previewed = files.length > 2 ? none : files;
  const { shown, problem: redactionProblem } = useRedacted(previewed, wish);
  useTitle("");
  const lastFiles = useRef<readonly File[]>([]);
  /** What was to be left out holds for files that are added, until one starts anew; a view is of its files. */
  const chooseFiles = (chosen: File[]) => {
    const last = lastFiles.current;
    const isSwapped = last.length === chosen.length && last.every((file) => chosen.includes(file));
    if (last.length > 0 && !isSwapped) forgetView();
    if (chosen.length) lastFiles.current = chosen;
    setFiles(chosen);
    if (chosen.length === 0) setWish(nothingRedacted);
  };
  const isOver = useIncoming((incoming) => {
    if (created) setWish(nothingRedacted);
    chooseFiles(created ? incoming : [...files, ...incoming]);
    setCreated(null);
  });
  const mustSignIn = session !== null && !session.anonymous_sharing && !isSignedIn(session);
  const isReader = isSignedIn(session) && !session?.scopes.includes("share");
  return (
    <Shell session={session}>
      <div class={`landing ${isOver ? "over" : ""}`}>
        <section class={`hero ${!created && previewed.length ? "chosen" : ""}`}>
          <HeroPicture />
          <div class="hero-text">
            <h1>
              A profile
              <br />
              becomes a link.
            </h1>
            <p>
              {mustSignIn
                ? "Sign in to share one here. Without that you can look at yours: dropped on this page, or pasted, it is read in your browser and sent nowhere."
                : "Drop a profile, get a flame graph that anyone with the link can read. Exact bytes kept, deleted when you say."}
            </p>
          </div>
          {created ? (
            <Done created={created} query={files.length === 1 ? viewQuery() : ""} onAgain={() => (setCreated(null), chooseFiles([]))} />
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
            <Ready files={files} wish={wish} redactionProblem={redactionProblem} onWish={setWish} session={session} onFiles={chooseFiles} onCreated={setCreated} />
          ) : (
            <DropZone onFiles={chooseFiles} limit={session?.limits.max_upload_bytes} />
          )}
        </section>
        {!created && shown && shown.length > 0 && (
          <Preview
            key={shown.map(({ name, lastModified, size }) => name + lastModified + size).join("\n")}
            files={shown}
            isRedacted={shown !== files}
            onFiles={chooseFiles}
            onSwap={() => chooseFiles([files[1], files[0]])}
          />
        )}
        <Recent list={created || files.length ? [] : listRemembered()} />
        {files.length === 0 && session && <Ways session={session} />}
      </div>
    </Shell>
  );
}
