/*
 * elsewhere: which other sites can show a share, and where.
 *
 * Those sites are programs in the reader's own browser that fetch the file from here, so the server must let
 * every site read it (it does for public and unlisted shares), and the browser must let an https page
 * reach this server. What they read, as their sources and documentation say (2026):
 *
 *   speedscope        #profileURL=: pprof, folded stacks, perf script, .cpuprofile, its own format
 *   Firefox Profiler  from-url/: perf script, .cpuprofile; not pprof. Folded stacks too, but it makes one
 *                     sample of every count, which no browser survives for nanoseconds or bytes
 *   Perfetto          reads pprof, but its policy forbids it to fetch from other sites, and what it takes by message it takes
 *                     from the window that opened it, which ours is not to any site: files are opened by hand
 */
import type { Share } from "../api/api.ts";

export interface Elsewhere {
  name: string;
  address: string;
}

const isLoopback = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host);

/** An address of the reader's own machine or network, as far as its name tells. */
export function isPrivateHost(host: string): boolean {
  return (
    isLoopback(host) ||
    /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.)/.test(host) ||
    /^\[f[cd][0-9a-f]{2}:|^\[fe80:/.test(host) ||
    /\.(local|internal|lan|home\.arpa)$/.test(host) ||
    !/[.:]/.test(host)
  );
}

/** An https page may fetch from here: over https, or from the reader's own machine. */
export const mayBeFetched = ({
  protocol,
  hostname,
}: Pick<Location, "protocol" | "hostname">): boolean =>
  protocol === "https:" || isLoopback(hostname);

export function elsewhere(
  share: Pick<Share, "id" | "format" | "filename" | "title">,
  origin: string,
): Elsewhere[] {
  const isPacked = /\.(zst|zstd)$/i.test(share.filename); // only gzip is unpacked there
  const raw = `${origin}/p/${share.id}/raw`;
  const isTimed = !isPacked && ["perf-script", "cpuprofile", "speedscope"].includes(share.format); // has an order in time that pprof loses
  const forSpeedscope = isTimed ? raw : `${origin}/p/${share.id}.pb.gz`;
  const title = share.title || share.filename;
  const sites = [
    {
      name: "speedscope",
      address: `https://www.speedscope.app/#profileURL=${encodeURIComponent(forSpeedscope)}${title ? `&title=${encodeURIComponent(title)}` : ""}`,
    },
  ];
  if (isTimed && share.format !== "speedscope")
    sites.push({
      name: "Firefox Profiler",
      address: `https://profiler.firefox.com/from-url/${encodeURIComponent(raw)}`,
    });
  return sites;
}
