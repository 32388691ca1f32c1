/*
 * comments_api: requests for comments. Separate from api.ts because most readers open no comments.
 */
import { change, getJson, queryOf } from "./api.ts";

/** A frame that a comment is about. */
export interface Pin {
  /** The hash of the frame's path (model/tree/path.ts). */
  hash: string;
  function: string;
}

export interface Comment {
  /** Increases per share and is never reused. */
  n: number;
  author: string;
  /** Markdown, as typed. */
  text: string;
  pin: Pin | null;
  /** The query of the address that the author saw, without "?". */
  view: string | null;
  created_at: string;
  edited_at: string | null;
  mine: boolean;
  can_delete: boolean;
}

export interface CommentPage {
  comments: Comment[];
  next_cursor: string | null;
}

/** The server's limits, in bytes of UTF-8. */
export const maxTextBytes = 8192;
export const maxNameBytes = 4096;
export const maxViewBytes = 4096;

export const byteCount = (text: string): number => new TextEncoder().encode(text).length;

const pathOf = (id: string, n?: number) =>
  `/api/v1/shares/${encodeURIComponent(id)}/comments${n === undefined ? "" : `/${n}`}`;

export const listComments = (id: string, cursor: string, signal: AbortSignal) =>
  getJson<CommentPage>(pathOf(id) + queryOf({ cursor }), signal);

export const writeComment = (id: string, text: string, pin: Pin | null, view: string | null) =>
  change<Comment>("POST", pathOf(id), {
    text,
    pin_hash: pin?.hash ?? null,
    pin_function: pin?.function ?? null,
    view,
  });

export const editComment = (id: string, n: number, text: string) =>
  change<Comment>("PATCH", pathOf(id, n), { text });

export const deleteComment = (id: string, n: number, deleteToken: string) =>
  change<void>(
    "DELETE",
    pathOf(id, n),
    undefined,
    deleteToken ? { "X-Perfolio-Delete-Token": deleteToken } : {},
  );
