/*
 * landing_sections: the parts around the first page's form: a picture, commands for a terminal,
 * shares from this browser.
 */
import type { Session } from "../../api/api.ts";
import type { StoredShare } from "../../model/storage/browser_storage.ts";
import { formatAgo } from "../../model/text/units.ts";
import { CopyField } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { commandsFor, Trust } from "../commands.tsx";

/** An illustration: animated rows of an icicle. */
export function HeroPicture() {
  const rows: [number, number, number][][] = [
    [[0, 100, 1]],
    [
      [0, 61.4, 2],
      [61.6, 38.4, 6],
    ],
    [
      [0, 44.4, 3],
      [44.6, 16.8, 2],
      [61.6, 22.4, 6],
      [84.2, 15.8, 5],
    ],
    [
      [0, 26.4, 4],
      [26.6, 17.8, 3],
      [44.6, 9, 7],
      [61.6, 14, 5],
      [75.8, 5.2, 2],
      [84.2, 8, 6],
    ],
    [
      [0, 17.4, 4],
      [17.6, 8.8, 2],
      [26.6, 12, 3],
      [38.8, 3, 7],
      [61.6, 9, 7],
      [84.2, 2.6, 3],
    ],
    [
      [0, 11, 1],
      [11.2, 3.4, 3],
      [17.6, 4.4, 5],
      [26.6, 6, 2],
      [61.6, 2.8, 4],
    ],
    [
      [0, 5.5, 3],
      [26.6, 3, 4],
    ],
  ];
  return (
    <svg class="hero-picture" viewBox="0 0 100 34.5" preserveAspectRatio="none" aria-hidden="true">
      {rows.map((row, depth) => (
        <g class={`hero-row r${depth}`} key={depth}>
          {row.map(([x, width, tone]) => (
            <rect key={x} class={`t${tone}`} x={x} y={depth * 5} width={width} height="4.5" />
          ))}
        </g>
      ))}
    </svg>
  );
}

export function Recent({ list }: { list: StoredShare[] }) {
  if (list.length === 0) return null;
  return (
    <section class="recent" aria-labelledby="recent-title">
      <h2 id="recent-title">Shared from this browser</h2>
      <ul>
        {list.slice(0, 8).map((entry) => (
          <li key={entry.id}>
            <a href={`/p/${entry.id}`}>{entry.title || entry.id}</a>
            <em>{formatAgo(entry.createdAt)}</em>
            <a
              class="icon-button"
              href={`/p/${entry.id}/delete#${encodeURIComponent(entry.deleteToken)}`}
              aria-label={`Delete ${entry.title || entry.id}`}
              title="Delete"
            >
              <Icon name="trash" />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Ways({ session }: { session: Session }) {
  const line = commandsFor(session, location.origin);
  return (
    <section class="ways" aria-label="From a terminal">
      {line.trust && (
        <div class="whole">
          <h2>First time: trust this server’s certificate</h2>
          <Trust line={line.trust} />
        </div>
      )}
      <div>
        <h2>From a terminal</h2>
        <p>
          One command returns one link. Use it in a CI job or a bug report.
          {(!line.trust || line.needsToken) && (
            <>
              {" "}
              First time: <code>{line.login}</code>
            </>
          )}
        </p>
        <CopyField what="Command" text={line.perfolio("push cpu.pb.gz")} />
      </div>
      <div>
        <h2>With curl only</h2>
        <p>
          The response is JSON; <code>url</code> is the link.
          {line.needsToken && (
            <>
              {" "}
              <code>PERFOLIO_TOKEN</code> must contain{" "}
              <a href="/settings#tokens">a token from the settings</a> that permits sharing.
            </>
          )}
        </p>
        <CopyField
          what="Command"
          text={line.curl(`--data-binary @cpu.pb.gz ${location.origin}/api/v1/shares`)}
        />
      </div>
      <div>
        <h2>Before and after</h2>
        <p>Drop two files together, or join two links, to see what changed.</p>
        <CopyField what="Command" text={line.perfolio("diff before.pb.gz after.pb.gz")} />
      </div>
    </section>
  );
}
