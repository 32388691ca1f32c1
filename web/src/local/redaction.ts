/*
 * redaction: which data to remove from a file before it is sent; redact.ts removes it. Separate
 * from redact.ts because the first page needs it and only the worker needs redact.ts.
 */

export interface Redaction {
  /** base: keep the last component; number: replace the path, as by "file-3.go". */
  paths: "keep" | "base" | "number";
  /** The keys of the labels to remove, or all. */
  labels: readonly string[] | "all";
  commandLine: boolean;
  comments: boolean;
}

export const nothingRedacted: Redaction = {
  paths: "keep",
  labels: [],
  commandLine: false,
  comments: false,
};

export const isRedacting = ({ paths, labels, commandLine, comments }: Redaction): boolean =>
  paths !== "keep" || labels.length > 0 || commandLine || comments;
