/* downloads: what the menu of a share offers: its files, and other sites that can show them. */
import type { Session, Share } from "../api/api.ts";
import { formatBytes } from "../model/units.ts";
import { CopyField } from "../ui/kit.tsx";
import { commandsFor, Trust } from "./commands.tsx";
import { elsewhere, isPrivateHost, mayBeFetched } from "./elsewhere.ts";

const isOpen = ({ visibility }: Share) => visibility === "public" || visibility === "unlisted";

function Files({ share, base }: { share: Share; base: string }) {
  const kinds: [string, string, string][] = [
    [`${base}/raw`, "Original file", `${share.filename || "as it came"}, ${formatBytes(share.raw_bytes)}`],
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
      <p class="menu-note">This is the whole profile. What you see, after rules and zoom, is saved with the arrow beside the search, or with e.</p>
    </>
  );
}

function Elsewhere({ share }: { share: Share }) {
  if (!isOpen(share)) return <p class="menu-note">Other sites cannot open it: they read only what everybody with the link may read.</p>;
  if (!mayBeFetched(location)) return <p class="menu-note">Other sites cannot open it: they are served over https and may not read from a server without.</p>;
  return (
    <>
      <p class="menu-note">
        Open it in another site. <strong>That site is then given this profile’s link</strong>, with which anybody can read it.
      </p>
      {elsewhere(share, location.origin).map(({ name, address }) => (
        <a key={name} href={address} target="_blank" rel="noopener noreferrer">
          {name} <em>{new URL(address).hostname}</em>
        </a>
      ))}
      {isPrivateHost(location.hostname) && (
        <p class="menu-note">
          This server’s address is a private one. The other site runs in your browser and reads from here only if the browser allows it: Chrome asks whether
          it may reach your local network, and the server’s certificate must be one that the browser trusts.
        </p>
      )}
      <p class="menu-note">Perfetto reads pprof, but takes no links: save the .pb.gz and open it there.</p>
    </>
  );
}

/** Opened, it pushes what comes next out of the menu's sight. */
const showNext = ({ currentTarget }: { currentTarget: HTMLElement }) => currentTarget.nextElementSibling?.scrollIntoView({ block: "nearest" });

/** It sends neither password nor token, so it is offered where none is needed. */
function Pprof({ line, address }: { line: ReturnType<typeof commandsFor>; address: string }) {
  return (
    <>
      <p class="menu-note">Or where Go is:</p>
      {line.trust && (
        <details class="menu-note" onToggle={showNext}>
          <summary>First, once: trust this server’s certificate</summary>
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
      <Elsewhere share={share} />
      {isOpen(share) && session && <Pprof line={commandsFor(session, location.origin)} address={`${location.origin}${base}.pb.gz`} />}
    </>
  );
}
