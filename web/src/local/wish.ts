/* wish: what a reader wants left out of a file before it is sent; redact.ts does it. */

export interface Redaction {
  /** base: their last part; number: nothing of them, "file-3.go" in their place. */
  paths: "keep" | "base" | "number";
  /** Keys of labels, or all of them. */
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
