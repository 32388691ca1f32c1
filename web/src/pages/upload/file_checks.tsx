/*
 * file_checks: checks more files than a preview shows before anything is sent, because a merge
 * needs all of them.
 */
import { useEffect, useState } from "preact/hooks";
import { RefusedError } from "../../local/profile.ts";
import { LocalFile } from "../../workers/local_file.ts";
import { Button } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { nameAmong } from "./choose_files.tsx";
import type { ExpectedRefusal } from "./preview.tsx";

const faults = new WeakMap<File, Promise<Error | null>>();

/** The error that the browser finds in a file; null for none. Each file is read once. */
function faultOf(file: File): Promise<Error | null> {
  const read = async () => {
    const local = new LocalFile([file]);
    try {
      await local.read();
      return null;
    } catch (error) {
      return error as Error;
    } finally {
      local.close();
    }
  };
  if (!faults.has(file)) faults.set(file, read());
  return faults.get(file)!;
}

interface FileChecksProps {
  files: File[];
  onFiles: (files: File[]) => void;
  /** Called once all files are checked. */
  onExpectedRefusal: (what: ExpectedRefusal) => void;
}

export function FileChecks({ files, onFiles, onExpectedRefusal }: FileChecksProps) {
  const [found, setFound] = useState(new Map<File, Error>());
  useEffect(() => {
    let isLeft = false;
    const check = async () => {
      const wrong = new Map<File, Error>();
      for (const file of files) {
        // one after the other, because the memory of a tab fits one file better than all
        const fault = await faultOf(file);
        if (isLeft) return;
        if (fault) wrong.set(file, fault);
      }
      setFound(wrong);
      onExpectedRefusal(
        [...wrong.values()].some((fault) => fault instanceof RefusedError) ? "file" : "",
      );
    };
    void check();
    return () => void (isLeft = true);
  }, [files]);
  const refused = files.filter((file) => found.get(file) instanceof RefusedError);
  return (
    <div class="checks" id="preview" role="status">
      {files.map((file, i) => {
        const fault = found.get(file);
        return (
          fault && (
            <p class="preview-note" key={i}>
              <Icon name="alert" />
              <span>
                <strong>{nameAmong(files, i)}:</strong> {fault.message}{" "}
                {!refused.includes(file) && "The server may still be able to read it."}
              </span>
            </p>
          )
        );
      })}
      {refused.length > 0 && (
        <Button onClick={() => onFiles(files.filter((file) => !refused.includes(file)))}>
          {refused.length === 1
            ? "Continue without it"
            : `Continue without these ${refused.length}`}
        </Button>
      )}
    </div>
  );
}
