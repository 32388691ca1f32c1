/*
 * external_viewers: other sites that can show a share, and their links.
 *
 * These sites run in the reader's browser and fetch the file from here. So the server must allow
 * every site to read it (it does for public and unlisted shares), and the browser must allow an
 * https page to reach this server. They read, according to their sources and documentation (2026):
 *
 *   speedscope        #profileURL=: pprof, folded stacks, perf script, .cpuprofile, its own format
 *   Firefox Profiler  from-url/: perf script, .cpuprofile; not pprof. Folded stacks too, but it
 *                     creates one sample per count, which no browser survives for nanoseconds
 *   Perfetto          reads pprof, but its policy forbids fetching from other sites, and it accepts
 *                     messages only from its opener, which we are not: files are opened by hand
 */
import type { Share } from "../../api/api.ts";

/**
 * Upload formats that keep the order of samples in time, which pprof loses, and the sites that read
 * them. Other formats are sent to speedscope as pprof.
 */
export const timedFormats: Readonly<Record<string, readonly string[]>> = {
  "perf-script": ["speedscope", "Firefox Profiler"],
  cpuprofile: ["speedscope", "Firefox Profiler"],
  speedscope: ["speedscope"],
};

export interface ExternalViewer {
  name: string;
  address: string;
}

const isLoopback = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host);

/** Whether the address is on the reader's machine or private network, judged by its name. */
export function isPrivateHost(host: string): boolean {
  return (
    isLoopback(host) ||
    /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.)/.test(host) ||
    /^\[f[cd][0-9a-f]{2}:|^\[fe80:/.test(host) ||
    /\.(local|internal|lan|home\.arpa)$/.test(host) ||
    !/[.:]/.test(host)
  );
}

/** Whether an https page may fetch from here: over https, or from the reader's own machine. */
export const mayBeFetched = ({
  protocol,
  hostname,
}: Pick<Location, "protocol" | "hostname">): boolean =>
  protocol === "https:" || isLoopback(hostname);

export function externalViewers(
  share: Pick<Share, "id" | "format" | "filename" | "title">,
  origin: string,
): ExternalViewer[] {
  const isPacked = /\.(zst|zstd)$/i.test(share.filename); // these sites decompress only gzip
  const raw = `${origin}/p/${share.id}/raw`;
  const readers = (!isPacked && timedFormats[share.format]) || [];
  const forSpeedscope = readers.includes("speedscope") ? raw : `${origin}/p/${share.id}.pb.gz`;
  const title = share.title || share.filename;
  const sites = [
    {
      name: "speedscope",
      address:
        `https://www.speedscope.app/#profileURL=${encodeURIComponent(forSpeedscope)}` +
        (title ? `&title=${encodeURIComponent(title)}` : ""),
    },
  ];
  if (readers.includes("Firefox Profiler"))
    sites.push({
      name: "Firefox Profiler",
      address: `https://profiler.firefox.com/from-url/${encodeURIComponent(raw)}`,
    });
  return sites;
}
