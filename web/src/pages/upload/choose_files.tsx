/* choose_files: accepts dropped, pasted and chosen files, and lists them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { formatBytes } from "../../model/text/units.ts";
import { uploadFormats } from "../../model/text/upload_formats.ts";
import { IconButton, showMessage } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { takeEarlyDrops } from "./early_drop.ts";

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
          {uploadFormats.map(({ title }) => title).join(" · ")}
          {limit ? ` · up to ${formatBytes(limit)}` : ""}
        </span>
      </label>
    </div>
  );
}

/**
 * Listens for files that are dropped anywhere on the page or pasted. A pasted text counts as a file
 * if it may be a profile: it has several lines, begins like JSON, or ends with a number like a
 * folded stack. Returns whether files are being dragged over the page.
 */
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
      else if (text.trim()) showMessage("This text is too short to be a profile");
      else return;
      event.preventDefault();
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    addEventListener("paste", paste);
    const early = takeEarlyDrops();
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

/**
 * The name of a chosen file; if others have the same name, followed by a distinction ("cpu.pb.gz (2
 * MiB, …)").
 */
export function nameAmong(files: readonly File[], index: number): string {
  const { name, size, lastModified } = files[index];
  const others = files.filter((other, i) => i !== index && other.name === name);
  if (others.length === 0) return name;
  const details = ({ size, lastModified }: Pick<File, "size" | "lastModified">) =>
    `${formatBytes(size)}, ${new Date(lastModified).toLocaleString()}`;
  const own = details({ size, lastModified });
  return (
    `${name} (${own}` +
    `${others.some((other) => details(other) === own) ? `, file ${index + 1}` : ""})`
  );
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
