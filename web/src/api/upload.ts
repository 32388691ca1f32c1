/*
 * upload: sends a file, in one piece or in parts. An upload in parts that was cut off, by a closed tab or a lost
 * network, is remembered by this browser and goes on with the parts that are missing.
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
  findUnfinished,
  forgetUnfinished,
  rememberUnfinished,
  type Unfinished,
} from "../model/draft_store.ts";

const partsFrom = 8 * 1024 * 1024;

export interface Upload {
  settings: ShareSettings;
  /** waiting: why nothing is being sent now; else "". */
  onProgress: (sentBytes: number, totalBytes: number, waiting?: string) => void;
  signal: AbortSignal;
}

/** Browsers tell of what has been sent four times a second while it grows; on a busy machine it takes them longer. */
const reportMs = 3000;

/**
 * Gives up a request that makes a share, unless all of it has been sent: then the server may make the share, and only the
 * answer has the token that deletes it. What was last told of the sending is too old to go by.
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
 * XMLHttpRequest and not fetch, because only it tells how much has been sent. A POST makes a share: one that was cancelled
 * too late is answered all the same.
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

/** Header values are bytes; a password outside of ASCII travels as its UTF-8 bytes. */
function encodeHeader(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

/** An upload in parts, as the server tells it. */
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

/** Ends with the signal's reason when it is aborted. */
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
        `${error.status === 0 ? "the server cannot be reached" : "the server is busy"}, trying again in ${seconds} s`,
      );
      await pause(seconds * 1000, upload.signal);
    }
  }
}

/** What the server has of an upload that was begun before; null when it is over or unknown. */
async function receivedOf({ id, token }: Unfinished): Promise<Received | null> {
  try {
    return await getJson<Received>(uploadPath(id), undefined, tokenHeader(token));
  } catch (error) {
    if (error instanceof Problem && [401, 403, 404, 410].includes(error.status)) return null;
    throw error;
  }
}

async function goOn(
  known: Unfinished | null,
  size: number,
): Promise<{ at: Unfinished; begun: Received } | null> {
  const begun = known && (await receivedOf(known));
  if (known && begun && begun.size === size) return { at: known, begun };
  if (known) forgetUnfinished(known.id);
  return null;
}

async function begin(
  file: File,
  print: string,
  filename: string,
): Promise<{ at: Unfinished; begun: Received }> {
  const begun = await sendJson<Received & { upload_token?: string }>("POST", "/api/v1/uploads", {
    size: file.size,
    filename,
  });
  const at = { id: begun.id, token: begun.upload_token ?? "", print, begunAt: Date.now() };
  if (print) rememberUnfinished(at);
  return { at, begun: { ...begun, parts_received: [] } };
}

const bytesOf = (part: number, { part_bytes }: Received, size: number) =>
  Math.min(part_bytes, size - part * part_bytes);

async function uploadInParts(file: File, upload: Upload): Promise<Created> {
  const print = await fingerprintOf(file);
  upload.signal.throwIfAborted();
  const known = print ? findUnfinished(print) : null;
  const { at, begun } =
    (await goOn(known, file.size)) ?? (await begin(file, print, upload.settings.filename ?? ""));
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
  forgetUnfinished(at.id);
  return created;
}

/** How much of a file the server has from an upload that was cut off; 0 for none. */
export async function unfinishedBytes(file: File): Promise<number> {
  if (file.size <= partsFrom) return 0;
  const print = await fingerprintOf(file);
  const found = await goOn(print ? findUnfinished(print) : null, file.size);
  return (
    found?.begun.parts_received.reduce(
      (sum, part) => sum + bytesOf(part, found.begun, file.size),
      0,
    ) ?? 0
  );
}

/** Gives up what was begun, so that the file is sent from its beginning. */
export async function startOver(file: File): Promise<void> {
  const known = findUnfinished(await fingerprintOf(file));
  if (!known) return;
  forgetUnfinished(known.id);
  await sendJson("DELETE", uploadPath(known.id), undefined, tokenHeader(known.token)).catch(
    () => undefined,
  ); // it expires anyway
}

/**
 * Shares the bytes as they are; large ones go in parts that are tried again one by one, and later go on. One that is
 * cancelled when the server has all of it comes to a share nevertheless, which the caller deletes.
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
