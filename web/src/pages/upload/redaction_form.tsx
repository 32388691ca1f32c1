/* redaction_form: chooses the data to remove from the files before they are sent. */
import { useEffect, useState } from "preact/hooks";
import { Problem } from "../../api/api.ts";
import type { Redactable } from "../../local/redact.ts";
import { isRedacting, nothingRedacted, type Redaction } from "../../local/redaction.ts";
import { LocalFile } from "../../workers/local_file.ts";
import { formatCount } from "../../model/text/units.ts";
import { asProblem, Button, ErrorLine, Field, Select } from "../../ui/kit.tsx";

async function withLocal<T>(file: Blob, use: (local: LocalFile) => Promise<T>): Promise<T> {
  const local = new LocalFile([file]);
  try {
    return await use(local);
  } finally {
    local.close();
  }
}

/** The file to send: a redacted copy, or the file itself if nothing is to be redacted. */
export async function redactedFile(file: File, redaction: Redaction): Promise<File> {
  if (!isRedacting(redaction)) return file;
  const blob = await withLocal(file, (local) => local.redact(redaction));
  const name = /\.gz$/i.test(file.name) ? file.name : `${file.name}.gz`;
  // distinguishes it from others made of the same file
  return new File([blob], name, { type: "application/gzip", lastModified: Date.now() });
}

/** The files to preview, once they are redacted; a new list means other files. */
export function useRedacted(
  files: readonly File[],
  redaction: Redaction,
): { shown: readonly File[] | undefined; problem: Problem | null } {
  const [made, setMade] = useState<{
    of: readonly File[];
    redaction: Redaction;
    shown: readonly File[];
  } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    setProblem(null);
    if (!isRedacting(redaction)) return;
    let isLeft = false;
    Promise.all(files.map((file) => redactedFile(file, redaction))).then(
      (shown) => !isLeft && setMade({ of: files, redaction, shown }),
      (error) => !isLeft && setProblem(asProblem(error)),
    );
    return () => void (isLeft = true);
  }, [files, redaction]);
  if (!isRedacting(redaction)) return { shown: files, problem };
  return {
    shown: made?.of === files && made?.redaction === redaction ? made.shown : undefined,
    problem,
  };
}

/**
 * The parts that can be removed from a file; null if its format cannot be redacted, a problem if it
 * could not be read.
 */
type Found = Redactable | Problem | null;

function useRedactable(files: readonly File[]): Found[] | null {
  const [found, setFound] = useState<Found[] | null>(null);
  useEffect(() => {
    let isLeft = false;
    const looked = files.map((file) =>
      withLocal(file, (local) => local.redactable()).catch(asProblem),
    );
    void Promise.all(looked).then((all) => !isLeft && setFound(all));
    return () => void (isLeft = true);
  }, [files]);
  return found;
}

interface CheckProps {
  label: string;
  isOn: boolean;
  isDisabled?: boolean;
  onChange: (isOn: boolean) => void;
}

function Check({ label, isOn, isDisabled, onChange }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isOn}
        disabled={isDisabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}

/** The number of keys shown at first. */
const firstKeys = 40;

function Labels({
  keys,
  redaction,
  onChange,
}: {
  keys: string[];
  redaction: Redaction;
  onChange: (redaction: Redaction) => void;
}) {
  const { labels } = redaction;
  const [hasAll, setAll] = useState(false);
  const shown = hasAll ? keys : keys.slice(0, firstKeys);
  if (keys.length === 0) return <p class="hint">The samples have no labels.</p>;
  const toggle = (key: string, isOn: boolean) => {
    const chosen = new Set(labels === "all" ? keys : labels);
    if (isOn) chosen.add(key);
    else chosen.delete(key);
    onChange({ ...redaction, labels: chosen.size === keys.length ? "all" : [...chosen] });
  };
  return (
    <fieldset class="redact-labels">
      <legend>Labels to remove</legend>
      <Check
        label="All"
        isOn={labels === "all"}
        onChange={(isOn) => onChange({ ...redaction, labels: isOn ? "all" : [] })}
      />
      {shown.map((key) => (
        <Check
          key={key}
          label={key}
          isOn={labels === "all" || labels.includes(key)}
          onChange={(isOn) => toggle(key, isOn)}
        />
      ))}
      {shown.length < keys.length && (
        <Button look="quiet" onClick={() => setAll(true)}>
          Show {formatCount(keys.length - shown.length)} more
        </Button>
      )}
    </fieldset>
  );
}

/** The reason why a file cannot be redacted, as the end of a sentence. */
function whyNot(found: readonly Found[]): string {
  const problem = found.find((one) => one instanceof Problem);
  if (problem) return `. ${problem.message}`;
  return (
    ": the browser can only redact pprof and folded stacks, and " +
    `${found.length > 1 ? "one of these files has" : "this file has"} another format.`
  );
}

interface FormProps {
  files: readonly File[];
  redaction: Redaction;
  problem: Problem | null;
  onChange: (redaction: Redaction) => void;
}

export function RedactionForm({ files, redaction, problem, onChange }: FormProps) {
  const found = useRedactable(files);
  if (!found) return <p class="hint">Reading what can be redacted…</p>;
  const read = found.filter((one): one is Redactable => one !== null && !(one instanceof Problem));
  if (read.length < found.length)
    return (
      <div class="redaction">
        <p class="hint">
          Nothing can be redacted{whyNot(found)}
          {isRedacting(redaction)
            ? " Nothing is uploaded while redaction is on."
            : " The file would be uploaded unchanged."}
        </p>
        {isRedacting(redaction) && (
          <Button onClick={() => onChange(nothingRedacted)}>Turn redaction off</Button>
        )}
        <ErrorLine error={problem} />
      </div>
    );
  const hasPprof = read.some(({ format }) => format === "pprof");
  const hasFolded = read.some(({ format }) => format === "folded");
  const keys = [...new Set(read.flatMap(({ labelKeys }) => labelKeys))].sort();
  return (
    <div class="redaction">
      <p class="hint">
        Your browser redacts the file before the upload, and the preview shows the result. Function
        names and all numbers are kept.
        {hasFolded
          ? " Folded stacks contain only names, so only their comment lines can be removed."
          : ""}
      </p>
      {hasPprof && (
        <>
          <Field label="Paths, including those in labels and comments">
            {(id) => (
              <Select
                id={id}
                value={redaction.paths}
                choices={[
                  { value: "keep", label: "keep" },
                  { value: "base", label: "keep the last part only" },
                  { value: "number", label: "replace by numbers" },
                ]}
                onChange={(paths) => onChange({ ...redaction, paths: paths as Redaction["paths"] })}
              />
            )}
          </Field>
          <Labels keys={keys} redaction={redaction} onChange={onChange} />
        </>
      )}
      <Check
        label={
          "Remove the command line: comments and labels that contain it, and arguments of " +
          "the main binary"
        }
        isOn={redaction.commandLine}
        onChange={(commandLine) => onChange({ ...redaction, commandLine })}
      />
      <Check
        label={`Remove all comments in the ${files.length > 1 ? "files" : "file"}`}
        isOn={redaction.comments}
        onChange={(comments) => onChange({ ...redaction, comments })}
      />
      <ErrorLine error={problem} />
    </div>
  );
}
