/* chosen_files: the chosen files with their settings and actions, until they are sent. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, type Session, type Share, type ShareSettings } from "../../api/api.ts";
import type { Redaction } from "../../local/redaction.ts";
import { formatBytes } from "../../model/text/units.ts";
import { asProblem, Button, ErrorLine, showMessage } from "../../ui/kit.tsx";
import { isSignedIn } from "../../ui/shell.tsx";
import { startOver, uploadedBytes } from "../../api/upload.ts";
import { FileList, nameAmong } from "./choose_files.tsx";
import { outcomeOf, type Outcome, type Together } from "./upload_done.tsx";
import type { ExpectedRefusal } from "./preview.tsx";
import { ProgressBar } from "./progress.tsx";
import { RedactionForm } from "./redaction_form.tsx";
import { Sending, type Progress } from "./sending.ts";
import { nameOf } from "../share/share.tsx";
import { cleanSettings, SettingsForm } from "./settings_form.tsx";

/** A file that the server has in part, from an interrupted upload. */
function Continued({ file, name }: { file: File; name: string }) {
  const [bytes, setBytes] = useState(0);
  useEffect(() => {
    let isLeft = false;
    setBytes(0);
    // If this request fails, no button is shown; sending repeats the request and reports the error.
    uploadedBytes(file).then(
      (found) => !isLeft && setBytes(found),
      () => undefined,
    );
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
        {name}: {formatBytes(bytes)} of {formatBytes(file.size)} are already uploaded. The upload
        continues from there.
      </span>
      <Button look="quiet" onClick={anew}>
        Start over
      </Button>
    </p>
  );
}

interface ChosenFilesProps {
  files: File[];
  redaction: Redaction;
  redactionProblem: Problem | null;
  onRedaction: (redaction: Redaction) => void;
  session: Session | null;
  /** The part of the upload that the preview expects the server to refuse. */
  expectedRefusal: ExpectedRefusal;
  onFiles: (files: File[]) => void;
  onSent: (outcome: Outcome) => void;
  /** A single file is compared with this share; the file is the side before. */
  against?: Share;
  /** Increases when a button outside of the form disappears: the form then takes the focus. */
  readyCount: number;
}

/**
 * Sends the files. Deletes the created shares if a file is removed or the form is left.
 */
function useSending(
  files: File[],
  redaction: Redaction,
  settings: ShareSettings,
  onSent: ChosenFilesProps["onSent"],
) {
  const [progress, setProgress] = useState<Progress | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const [abort, setAbort] = useState<AbortController | null>(null);
  const [isCancelled, setCancelled] = useState(false);
  const sending = useRef(new Sending()).current;
  useEffect(
    () => void sending.deleteSent(sending.files.filter((file) => !files.includes(file))),
    [files],
  );
  useEffect(() => () => void sending.deleteSent(), []);

  const send = async (together: Together) => {
    setError(null);
    setCancelled(false);
    const cancelling = new AbortController();
    setAbort(cancelling);
    try {
      const clean = cleanSettings(settings);
      let shares = await sending.sendAll(files, redaction, clean, setProgress, cancelling.signal);
      if (together === "merge") {
        setProgress({ sent: 1, total: 1, label: "Merging" });
        shares = [await sending.merge(shares, clean, cancelling.signal), ...shares];
      }
      sending.finish();
      onSent(outcomeOf(together, shares));
    } catch (caught) {
      if (!(caught instanceof DOMException && caught.name === "AbortError"))
        setError(asProblem(caught));
      else if (sending.files.length > 0) {
        const left = await sending.deleteSent();
        if (left.length === 0) showMessage("Cancelled. The uploaded files were deleted.");
        else
          setError(
            new Problem(
              0,
              "",
              "",
              "Cancelled, but the server did not delete " +
                `${left.map(({ title }) => title).join(", ")}. Delete it in the list “Shared ` +
                "from this browser” on the home page.",
              "",
              null,
            ),
          );
      }
      setProgress(null);
    }
  };
  const cancel = () => {
    setCancelled(true);
    abort?.abort();
  };
  return { sending, progress, error, isCancelled, send, cancel };
}

export function ChosenFiles({
  files,
  redaction,
  redactionProblem,
  onRedaction,
  session,
  expectedRefusal,
  onFiles,
  onSent,
  against,
  readyCount,
}: ChosenFilesProps) {
  const [isRedactionOpen, setRedactionOpen] = useState(false);
  const [settings, setSettings] = useState<ShareSettings>({ visibility: "unlisted" });
  const { sending, progress, error, isCancelled, send, cancel } = useSending(
    files,
    redaction,
    settings,
    onSent,
  );
  const form = useRef<HTMLFormElement>(null);
  const isSending = progress !== null;
  useEffect(() => {
    if (!isSending) form.current?.querySelector<HTMLButtonElement>("button[type=submit]")?.focus();
  }, [isSending, readyCount]);
  const isHeld = expectedRefusal === "unknown";
  useEffect(() => {
    if (!isHeld && document.activeElement === document.body)
      form.current?.querySelector<HTMLButtonElement>("button[type=submit]")?.focus();
  }, [isHeld]);
  if (progress)
    return (
      <section class="card ready">
        <ProgressBar progress={progress} isCancelled={isCancelled} onCancel={cancel} />
      </section>
    );
  const first: Together = files.length === 1 ? "single" : files.length === 2 ? "compare" : "merge";
  /**
   * A single file can be sent although the browser expects a refusal. If one of two files were
   * refused, the other one would remain on the server without the comparison.
   */
  const isDoubtful = first === "single" && expectedRefusal === "file";
  return (
    <section class="card ready" aria-label="Share settings">
      {against && first === "single" && (
        <p>This file is shared and compared with {nameOf(against)}, as the profile before.</p>
      )}
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
        <details
          class="redact"
          onToggle={(event) => setRedactionOpen(isRedactionOpen || event.currentTarget.open)}
        >
          <summary>Redact before upload</summary>
          {isRedactionOpen && (
            <RedactionForm
              files={files}
              redaction={redaction}
              problem={redactionProblem}
              onChange={onRedaction}
            />
          )}
        </details>
        <div class="ready-errors">
          <ErrorLine error={error} />
          {error && sending.files.length > 0 && (
            <p class="hint" role="status">
              {files
                .flatMap((file, i) => (sending.files.includes(file) ? nameAmong(files, i) : []))
                .join(", ")}{" "}
              {sending.files.length > 1 ? "are" : "is"} already on the server and will not be
              uploaded again. Cancel deletes {sending.files.length > 1 ? "them" : "it"}.
            </p>
          )}
        </div>
        {isDoubtful && (
          <p class="hint" role="status">
            This does not look like a profile. Upload anyway? The reason is below.
          </p>
        )}
        <div class="actions">
          <a class="button quiet to-preview" href="#preview">
            <span>See preview</span>
          </a>
          <Button look="quiet" onClick={() => onFiles([])}>
            Cancel
          </Button>
          {files.length === 2 && (
            <Button disabled={expectedRefusal === "file"} onClick={() => void send("merge")}>
              Merge profiles
            </Button>
          )}
          <Button
            look={isDoubtful ? undefined : "primary"}
            type="submit"
            disabled={first !== "single" && expectedRefusal !== ""}
            icon={first === "compare" ? "compare" : "upload"}
          >
            {first === "single"
              ? against
                ? "Share and compare"
                : "Create link"
              : first === "compare"
                ? "Compare profiles"
                : `Merge ${files.length} profiles`}
          </Button>
        </div>
      </form>
    </section>
  );
}
