/* downloads: the download menu of a share: its files, and external sites that can show them. */
import type { Session, Share } from "../../api/api.ts";
import { formatBytes } from "../../model/text/units.ts";
import { CopyField } from "../../ui/kit.tsx";
import { commandsFor, Trust } from "../commands.tsx";
import { externalViewers, isPrivateHost, mayBeFetched } from "./external_viewers.ts";

const isOpen = ({ visibility }: Share) => visibility === "public" || visibility === "unlisted";

function Files({ share, base }: { share: Share; base: string }) {
  const kinds: [string, string, string][] = [
    [
      `${base}/raw`,
      "Original file",
      `${share.filename || "as uploaded"}, ${formatBytes(share.raw_bytes)}`,
    ],
    [`${base}.pb.gz`, "pprof", ".pb.gz"],
    [`${base}.folded`, "Folded stacks", ".folded"],
    [`${base}.json`, "JSON", ".json"],
    [`${base}.svg`, "Picture, SVG", ".svg"],
    [`${base}.png`, "Picture, PNG", ".png"],
    [`${base}.dot`, "Call graph for Graphviz", ".dot"],
  ];
  return (
    <>
      {kinds.map(([address, label, note]) => (
        <a key={address} href={address} download>
          {label} <em>{note}</em>
        </a>
      ))}
      <p class="menu-note">
        These files contain the whole profile. To save the current view with its rules and zoom,
        press e or “Save this view” beside the search.
      </p>
    </>
  );
}

function ExternalViewer({ share }: { share: Share }) {
  if (!isOpen(share))
    return (
      <p class="menu-note">
        Other sites cannot open this profile: they can only read profiles that anyone with the link
        can read.
      </p>
    );
  if (!mayBeFetched(location))
    return (
      <p class="menu-note">
        Other sites cannot open this profile: they use HTTPS, and browsers do not let them read from
        a server without HTTPS.
      </p>
    );
  return (
    <>
      <p class="menu-note">
        Open in another site. <strong>That site receives this profile’s link</strong>, and anyone
        with the link can read the profile.
      </p>
      {externalViewers(share, location.origin).map(({ name, address }) => (
        <a key={name} href={address} target="_blank" rel="noopener noreferrer">
          {name} <em>{new URL(address).hostname}</em>
        </a>
      ))}
      {isPrivateHost(location.hostname) && (
        <p class="menu-note">
          This server has a private address. The other site runs in your browser, which must allow
          it to read from here: Chrome asks for access to your local network, and the browser must
          trust the server’s certificate.
        </p>
      )}
      <p class="menu-note">
        Perfetto reads pprof but does not open links: download the .pb.gz file and open it there.
      </p>
    </>
  );
}

/** Scrolls to the next entry, which opening this one pushes out of view. */
const showNext = ({ currentTarget }: { currentTarget: HTMLElement }) =>
  currentTarget.nextElementSibling?.scrollIntoView({ block: "nearest" });

/** pprof sends neither password nor token, so its command is shown only if none is needed. */
function Pprof({ line, address }: { line: ReturnType<typeof commandsFor>; address: string }) {
  return (
    <>
      <p class="menu-note">Or, with Go installed:</p>
      {line.trust && (
        <details class="menu-note" onToggle={showNext}>
          <summary>First time: trust this server’s certificate</summary>
          <Trust line={line.trust} />
        </details>
      )}
      <CopyField what="Command" text={line.pprof(address)} />
    </>
  );
}

export function Downloads({ share, session }: { share: Share; session: Session | null }) {
  const base = `/p/${share.id}`;
  return (
    <>
      <Files share={share} base={base} />
      <ExternalViewer share={share} />
      {isOpen(share) && session && (
        <Pprof
          line={commandsFor(session, location.origin)}
          address={`${location.origin}${base}.pb.gz`}
        />
      )}
    </>
  );
}
