/* audit: the section with the audit log of the team. */
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import { formatAgo, formatDate } from "../../model/text/units.ts";
import * as api from "../../api/team_api.ts";
import { asProblem, Button, ErrorLine, Loading, Name } from "../../ui/kit.tsx";
import { useChangeListener } from "./use_part.tsx";
import { Section } from "./section.tsx";

export function Audit() {
  const [log, setLog] = useState<api.AuditPage | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const load = (
    cursor: string,
    join: (old: api.AuditPage | null, page: api.AuditPage) => api.AuditPage,
  ) =>
    api.listAudit(cursor).then(
      (page) => (setError(null), setLog((old) => join(old, page))),
      (caught) => setError(asProblem(caught)),
    );
  const more = (cursor: string) =>
    load(cursor, (old, page) => ({ ...page, entries: [...(old?.entries ?? []), ...page.entries] }));
  /**
   * New entries are put before those shown. If there are so many that the newest one shown is not
   * on the first page, that page replaces all, because there would be a gap.
   */
  const update = () =>
    load("", (old, page) => {
      const known = page.entries.findIndex(({ id }) => id === old?.entries[0]?.id);
      return old && known >= 0
        ? { ...old, entries: [...page.entries.slice(0, known), ...old.entries] }
        : page;
    });
  useEffect(() => void update(), []);
  useChangeListener(update);
  return (
    <Section
      id="audit"
      title="Audit log"
      text="Changes by team members: what, when and from where."
    >
      <ErrorLine error={error} />
      {!log ? (
        !error && <Loading />
      ) : (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label="Audit log">
            <table class="list small">
              <thead>
                <tr>
                  <th scope="col">When</th>
                  <th scope="col">Who</th>
                  <th scope="col">What</th>
                  <th scope="col">From</th>
                </tr>
              </thead>
              <tbody>
                {log.entries.map((entry) => (
                  <tr key={entry.id}>
                    <td title={formatDate(entry.at)}>{formatAgo(entry.at)}</td>
                    <td>{entry.actor || "the server"}</td>
                    <td>
                      <code>{entry.action}</code> <Name text={entry.target} />
                    </td>
                    <td>{entry.address}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {log.next_cursor && (
            <p class="pager">
              <Button onClick={() => void more(log.next_cursor!)}>Show more</Button>
            </p>
          )}
        </>
      )}
    </Section>
  );
}
