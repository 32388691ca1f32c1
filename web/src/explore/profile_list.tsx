/*
 * profile_list: the single profiles of a selection, newest first. One of them can be opened alone.
 */
import { useState } from "preact/hooks";
import { listStored, type StoredProfile } from "../api/explore_api.ts";
import type { QueryRequest } from "../model/continuous/explore_state.ts";
import { formatTime } from "../model/continuous/time_window.ts";
import { formatValue } from "../model/text/units.ts";
import { asProblem, Button, ErrorLine, Loading, Name } from "../ui/kit.tsx";
import type { Problem } from "../api/api.ts";
import { useLoaded } from "./use_selection.ts";

function labelText({ labels }: StoredProfile): string {
  return Object.entries(labels)
    .filter(([name]) => !name.startsWith("__"))
    .map(([name, value]) => `${name}=${value}`)
    .join(" · ");
}

interface ProfileListProps {
  request: QueryRequest;
  /** The opened profile, or "". */
  opened: string;
  onOpen: (id: string) => void;
}

export function ProfileList({ request, opened, onOpen }: ProfileListProps) {
  const key = `${request.query}\n${request.from}\n${request.to}`;
  const first = useLoaded(key, (signal) => listStored(request, "", signal));
  const [more, setMore] = useState<{ key: string; rows: StoredProfile[]; next: string | null }>({
    key: "",
    rows: [],
    next: null,
  });
  const [problem, setProblem] = useState<Problem | null>(null);
  const isSame = more.key === key;
  const rows = [...(first.value?.data ?? []), ...(isSame ? more.rows : [])];
  const next = isSame ? more.next : (first.value?.next ?? null);
  const loadMore = () =>
    listStored(request, next!).then(
      (page) =>
        setMore({ key, rows: [...(isSame ? more.rows : []), ...page.data], next: page.next }),
      (error) => setProblem(asProblem(error)),
    );
  if (first.problem ?? problem) return <ErrorLine error={first.problem ?? problem} />;
  if (!first.value) return <Loading label="Loading the list" />;
  return (
    <div class="stored" role="group" aria-label="Single profiles" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Start</th>
            <th scope="col" class="number">
              Duration
            </th>
            <th scope="col" class="number">
              Total
            </th>
            <th scope="col">Labels</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} class={row.id === opened ? "chosen" : ""}>
              <th scope="row">
                <button
                  type="button"
                  aria-pressed={row.id === opened}
                  onClick={() => onOpen(row.id === opened ? "" : row.id)}
                >
                  {formatTime(new Date(row.time).getTime())}
                </button>
              </th>
              <td class="number">
                {row.duration_ns > 0 ? formatValue(row.duration_ns, "ns") : "–"}
              </td>
              <td class="number">{formatValue(row.total, row.unit)}</td>
              <td>
                <Name text={labelText(row)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="hint">No profiles.</p>}
      {next && (
        <p class="pager">
          <Button onClick={() => void loadMore()}>Show more</Button>
        </p>
      )}
    </div>
  );
}
