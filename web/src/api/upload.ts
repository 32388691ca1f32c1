/*
 * upload: sends a file, in one piece or in parts. If an upload in parts is interrupted (closed tab,
 * lost network), this browser stores its id and later continues with the missing parts.
 */
import {
  change,
  csrf,
  getJson,
  getSession,
  Problem,
  problemOf,
  queryOf,
  sendJson,
  type Created,
  type ShareSettings,
} from "./api.ts";
import {
  fingerprintOf,
  findDraft,
  removeDraft,
  storeDraft,
  type UploadDraft,
} from "../model/storage/draft_store.ts";

/** A larger file is sent in parts. */
const partsFrom = 8 * 1024 * 1024;

export interface Upload {
  settings: ShareSettings;
  /** waiting: why nothing is being sent at the moment; otherwise "". */
  onProgress: (sentBytes: number, totalBytes: number, waiting?: string) => void;
  signal: AbortSignal;
}

/** The time to wait for a report: browsers send four a second, on a busy machine fewer. */
const reportMs = 3000;

/**
 * Aborts a request that creates a share, unless its whole body was sent: the server may create the
 * share then, and only the response contains the token that deletes it, so the request has to
 * finish. The last progress event is too old to decide this, so it waits for the next one, at most
 * reportMs.
 */
function abortUnlessSent(xhr: XMLHttpRequest, known: { isSent: boolean }): void {
  if (known.isSent) return;
  const timer = setTimeout(() => xhr.abort(), reportMs);
  xhr.upload.addEventListener("progress", ({ loaded, total }) =>
    loaded < total ? xhr.abort() : clearTimeout(timer),
  );
  xhr.addEventListener("loadend", () => clearTimeout(timer));
}

/**
 * XMLHttpRequest instead of fetch, because only it reports upload progress. A POST creates a share:
 * if it is cancelled too late, the response is still read.
 */
function sendBody(
  method: "POST" | "PUT",
  path: string,
  body: Blob,
  headers: Record<string, string>,
  upload: Upload,
  sentBefore: number,
  total: number,
) {
  return new Promise<string>((resolve, reject) => {
    upload.signal.throwIfAborted();
    const xhr = new XMLHttpRequest();
    const known = { isSent: false };
    const cancel = () => (method === "POST" ? abortUnlessSent(xhr, known) : xhr.abort());
    xhr.open(method, path);
    if (csrf()) xhr.setRequestHeader("X-CSRF-Token", csrf());
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = ({ loaded }) => {
      known.isSent = loaded >= body.size;
      upload.onProgress(sentBefore + loaded, total);
    };
    xhr.onload = () => {
      if (xhr.status >= 200 && xhr.status < 300) return resolve(xhr.responseText);
      const retry = xhr.getResponseHeader("Retry-After");
      const response = new Response(xhr.responseText, {
        status: xhr.status || 500,
        headers: retry ? { "Retry-After": retry } : {},
      });
      problemOf(response).then(reject, reject);
    };
    xhr.onerror = () =>
      reject(
        new Problem(
          0,
          "offline",
          "The upload was cut off",
          "The server cannot be reached. Try again.",
          "",
          null,
        ),
      );
    xhr.onabort = () => reject(new DOMException("aborted", "AbortError"));
    xhr.onloadend = () => upload.signal.removeEventListener("abort", cancel);
    upload.signal.addEventListener("abort", cancel, { once: true });
    xhr.send(body);
  });
}

const settingsQuery = (settings: ShareSettings) =>
  queryOf({
    title: settings.title,
    description: settings.description,
    expires: settings.expires,
    visibility: settings.visibility,
    filename: settings.filename,
  });

const passwordHeader = (settings: ShareSettings): Record<string, string> =>
  settings.visibility === "password" && settings.password
    ? { "X-Perfolio-Password": encodeHeader(settings.password) }
    : {};

/** Header values are bytes, so a password that is not ASCII is sent as UTF-8 bytes. */
function encodeHeader(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

/** The server's state of an upload in parts. */
interface Received {
  id: string;
  size: number;
  part_bytes: number;
  part_count: number;
  parts_received: number[];
}

const uploadPath = (id: string) => `/api/v1/uploads/${encodeURIComponent(id)}`;
const tokenHeader = (token: string): Record<string, string> =>
  token ? { "X-Perfolio-Upload-Token": token } : {};

/** Rejects with the signal's reason when aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

async function sendPart(
  path: string,
  part: Blob,
  headers: Record<string, string>,
  upload: Upload,
  sent: number,
  total: number,
) {
  for (let attempt = 0; ; attempt++) {
    try {
      await sendBody("PUT", path, part, headers, upload, sent, total);
      return;
    } catch (error) {
      const mayRetry =
        error instanceof Problem &&
        (error.status === 0 || error.status === 429 || error.status === 503);
      if (!mayRetry || attempt === 5) throw error;
      const seconds = Math.min(30, error.retryAfter ?? 2 ** attempt);
      upload.onProgress(
        sent,
        total,
        `${error.status === 0 ? "the server cannot be reached" : "the server is busy"}, trying ` +
          `again in ${seconds} s`,
      );
      await pause(seconds * 1000, upload.signal);
    }
  }
}

/** The server's state of an interrupted upload; null if it has expired or is unknown. */
async function receivedOf({ id, token }: UploadDraft): Promise<Received | null> {
  try {
    return await getJson<Received>(uploadPath(id), undefined, tokenHeader(token));
  } catch (error) {
    if (error instanceof Problem && [401, 403, 404, 410].includes(error.status)) return null;
    throw error;
  }
}

async function resume(
  known: UploadDraft | null,
  size: number,
): Promise<{ at: UploadDraft; begun: Received } | null> {
  const begun = known && (await receivedOf(known));
  if (known && begun && begun.size === size) return { at: known, begun };
  if (known) removeDraft(known.id);
  return null;
}

async function begin(
  file: File,
  print: string,
  filename: string,
): Promise<{ at: UploadDraft; begun: Received }> {
  const begun = await sendJson<Received & { upload_token?: string }>("POST", "/api/v1/uploads", {
    size: file.size,
    filename,
  });
  const at = { id: begun.id, token: begun.upload_token ?? "", print, begunAt: Date.now() };
  if (print) storeDraft(at);
  return { at, begun: { ...begun, parts_received: [] } };
}

const bytesOf = (part: number, { part_bytes }: Received, size: number) =>
  Math.min(part_bytes, size - part * part_bytes);

async function uploadInParts(file: File, upload: Upload): Promise<Created> {
  const print = await fingerprintOf(file);
  upload.signal.throwIfAborted();
  const known = print ? findDraft(print) : null;
  const { at, begun } =
    (await resume(known, file.size)) ?? (await begin(file, print, upload.settings.filename ?? ""));
  const headers = tokenHeader(at.token);
  const received = new Set(begun.parts_received);
  let sent = 0;
  for (const part of received) sent += bytesOf(part, begun, file.size);
  upload.onProgress(sent, file.size);
  for (let part = 0; part < begun.part_count; part++) {
    if (received.has(part)) continue;
    const from = part * begun.part_bytes;
    await sendPart(
      `${uploadPath(at.id)}/parts/${part}`,
      file.slice(from, from + begun.part_bytes),
      headers,
      upload,
      sent,
      file.size,
    );
    sent += bytesOf(part, begun, file.size);
  }
  upload.signal.throwIfAborted();
  const created = await sendJson<Created>(
    "POST",
    `${uploadPath(at.id)}/complete${settingsQuery(upload.settings)}`,
    undefined,
    {
      ...headers,
      ...passwordHeader(upload.settings),
    },
  );
  removeDraft(at.id);
  return created;
}

/** The number of bytes that the server already has from an interrupted upload; 0 for none. */
export async function uploadedBytes(file: File): Promise<number> {
  if (file.size <= partsFrom) return 0;
  const print = await fingerprintOf(file);
  const found = await resume(print ? findDraft(print) : null, file.size);
  return (
    found?.begun.parts_received.reduce(
      (sum, part) => sum + bytesOf(part, found.begun, file.size),
      0,
    ) ?? 0
  );
}

/** Discards an interrupted upload, so that the file is sent from the start. */
export async function startOver(file: File): Promise<void> {
  const known = findDraft(await fingerprintOf(file));
  if (!known) return;
  removeDraft(known.id);
  await sendJson("DELETE", uploadPath(known.id), undefined, tokenHeader(known.token)).catch(
    () => undefined,
  ); // it expires anyway
}

/**
 * Creates a share from the unchanged bytes of a file. A large file is sent in parts, which are
 * repeated one by one and can be continued later. If it is cancelled when the server has the whole
 * file, a share is created nevertheless, and the caller deletes it.
 */
export async function uploadProfile(file: File, upload: Upload): Promise<Created> {
  await getSession().catch(() => undefined);
  upload.signal.throwIfAborted();
  if (file.size > partsFrom) return uploadInParts(file, upload);
  const path = "/api/v1/shares" + settingsQuery(upload.settings);
  const headers = {
    "Content-Type": "application/octet-stream",
    ...passwordHeader(upload.settings),
  };
  return JSON.parse(await sendBody("POST", path, file, headers, upload, 0, file.size)) as Created;
}

export const mergeShares = (ids: string[], settings: ShareSettings) =>
  change<Created>("POST", "/api/v1/merge" + settingsQuery(settings), { shares: ids });
