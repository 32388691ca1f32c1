/* choose_files: how files come to the first page: dropped, pasted or chosen; and the list of those that did. */
import { useEffect, useRef, useState } from "preact/hooks";
import { formatBytes } from "../model/units.ts";
import { IconButton, say } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import { takeEarly } from "./early_drop.ts";
import { nameAmong } from "./name_among.ts";

export function DropZone({ onFiles, limit }: { onFiles: (files: File[]) => void; limit?: number }) {
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
        <span class="drop-icon">
          <Icon name="upload" />
        </span>
        <strong>Drop a profile here</strong>
        <span>
          or <u>choose a file</u>
          <span class="keyed">
            , or paste one with <kbd>Ctrl</kbd> <kbd>V</kbd>
          </span>
        </span>
        <span class="drop-formats">
          pprof · folded stacks · perf script · Chrome .cpuprofile · speedscope
          {limit ? ` · up to ${formatBytes(limit)}` : ""}
        </span>
      </label>
    </div>
  );
}

/** Files that are dropped anywhere on the page or pasted; text counts as a file too. */
export function useIncoming(onFiles: (files: File[]) => void): boolean {
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
      if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement)
        return;
      const files = [...(event.clipboardData?.files ?? [])];
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (files.length) latest.current(files);
      else if (text.includes("\n") || text.startsWith("{") || /\S[ \t]+[\d.]+$/.test(text.trim()))
        latest.current([new File([text], "pasted.txt", { type: "text/plain" })]);
      else if (text.trim()) say("This text is too short to be a profile");
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

export function FileList({
  files,
  onRemove,
}: {
  files: File[];
  onRemove: (index: number) => void;
}) {
  return (
    <ul class="files">
      {files.map((file, i) => (
        <li key={file.name + i}>
          <Icon name="file" />
          <span class="file-name">{nameAmong(files, i)}</span>
          <em>{formatBytes(file.size)}</em>
          <IconButton
            icon="close"
            label={`Remove ${nameAmong(files, i)}`}
            onClick={() => onRemove(i)}
          />
        </li>
      ))}
    </ul>
  );
}
