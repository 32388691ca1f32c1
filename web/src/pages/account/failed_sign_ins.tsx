/* failed_sign_ins: the section with wrong passwords that were entered for the own account. */
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import { formatAgo, formatCount, formatDate } from "../../model/text/units.ts";
import * as api from "../../api/team_api.ts";
import { asProblem, ErrorLine, Loading } from "../../ui/kit.tsx";
import { Section } from "./section.tsx";

const shownAddresses = 10;
const times = (count: number) => (count === 1 ? "once" : `${formatCount(count)} times`);

/** Failed sign-ins to this account. */
export function FailedSignIns() {
  const [seen, setSeen] = useState<api.FailedSignIns | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  useEffect(
    () => void api.listFailedSignIns().then(setSeen, (caught) => setError(asProblem(caught))),
    [],
  );
  const hidden = (seen?.addresses.length ?? 0) - shownAddresses;
  return (
    <Section
      id="sign-ins"
      title="Failed sign-ins"
      text={
        "Wrong passwords entered for your account since your last visit. If they were not " +
        "yours, choose a new password that you use nowhere else."
      }
    >
      <ErrorLine error={error} />
      {!seen ? (
        !error && <Loading />
      ) : seen.count === 0 ? (
        <p class="hint">None{seen.since && ` since ${formatDate(seen.since)}`}.</p>
      ) : (
        <>
          <p>
            {seen.is_complete ? "" : "At least "}
            {formatCount(seen.count)}
            {seen.since && ` since ${formatDate(seen.since)}`}:
          </p>
          <ul class="rows-list">
            {seen.addresses.slice(0, shownAddresses).map(({ address, count, last_at }) => (
              <li key={address}>
                <span class="grow">
                  <strong>{address}</strong>
                  <span class="hint">
                    {times(count)}, last {formatAgo(last_at)}
                  </span>
                </span>
              </li>
            ))}
          </ul>
          {hidden > 0 && (
            <p class="hint">
              and {formatCount(hidden)} more {hidden === 1 ? "address" : "addresses"}
            </p>
          )}
        </>
      )}
    </Section>
  );
}
