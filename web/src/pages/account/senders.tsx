/*
 * senders: the sources of the team's continuous profiles: service, program, token, address, last
 * time, amount, errors.
 */
import { useEffect, useState } from "preact/hooks";
import type { Problem, Session } from "../../api/api.ts";
import { formatAgo, formatCount, formatDate } from "../../model/text/units.ts";
import { listSenders, type Sender } from "../../api/senders_api.ts";
import { asProblem, Button, Empty, Loading, Name, ProblemView, useTitle } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { isSignedIn, Shell, useMustSignIn } from "../../ui/shell.tsx";
import { addStyle } from "../../ui/later.tsx";
import { HowToSend } from "../how_to_send.tsx";
import style from "../pages.css?text";

addStyle(style);

const protocolNames: Record<string, string> = {
  otlp: "OpenTelemetry",
  "pyroscope-push": "Pyroscope push",
  "pyroscope-ingest": "Pyroscope ingest",
  perfolio: "Perfolio",
};

/** Whether the last request failed. */
const isFailing = ({ last_error_at, last_seen_at }: Sender) =>
  last_error_at !== null && last_error_at >= last_seen_at;
const byOf = ({ token_id, token_name, user }: Sender) =>
  token_name ?? user ?? (token_id === null ? "a former member" : "a revoked token");
const textOf = (sender: Sender) =>
  [
    sender.service,
    sender.agent,
    sender.address,
    byOf(sender),
    protocolNames[sender.protocol],
    sender.last_error,
  ]
    .join("\n")
    .toLowerCase();

function Row({ sender }: { sender: Sender }) {
  return (
    <tr>
      <th scope="row">
        <strong class="sender-name">
          {sender.service ? <Name text={sender.service} /> : "unknown service"}
        </strong>
        <span class="hint">
          {protocolNames[sender.protocol]} ·{" "}
          {sender.agent ? <Name text={sender.agent} /> : "no program named"}
        </span>
        <span class="hint sender-more">
          <Name text={byOf(sender)} /> · {sender.address}
        </span>
        {sender.cut_strings > 0 && (
          <span class="hint">
            {formatCount(sender.cut_strings)}
            {sender.cut_strings === 1 ? " name was " : " names were "}
            longer than your team’s limit and cut
          </span>
        )}
        {sender.last_error !== null && (
          <span class={`sender-error ${isFailing(sender) ? "failing" : "hint"}`}>
            {isFailing(sender) && <Icon name="alert" />}
            <span>
              {isFailing(sender) ? "Failing, " : "Last error, "}
              {formatAgo(sender.last_error_at!)}: <Name text={sender.last_error} />
            </span>
          </span>
        )}
      </th>
      <td class="wide-only">
        <Name text={sender.version ?? ""} />
      </td>
      <td class="wide-only">
        <Name text={byOf(sender)} />
      </td>
      <td class="wide-only">{sender.address}</td>
      <td class="number">{formatCount(sender.profiles)}</td>
      <td class="number wide-only">{formatCount(sender.samples)}</td>
      <td class="number wide-only">{formatCount(sender.errors)}</td>
      <td class="sender-seen" title={formatDate(sender.last_seen_at)}>
        {formatAgo(sender.last_seen_at)}
      </td>
    </tr>
  );
}

function Table({ senders }: { senders: Sender[] }) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">Service</th>
          <th scope="col" class="wide-only">
            Version
          </th>
          <th scope="col" class="wide-only">
            Token
          </th>
          <th scope="col" class="wide-only">
            From
          </th>
          <th scope="col" class="number">
            Profiles
          </th>
          <th scope="col" class="number wide-only">
            Samples
          </th>
          <th scope="col" class="number wide-only">
            Errors
          </th>
          <th scope="col">Last seen</th>
        </tr>
      </thead>
      <tbody>
        {senders.map((sender, i) => (
          <Row key={i} sender={sender} />
        ))}
      </tbody>
    </table>
  );
}

export function SendersPage({ session }: { session: Session | null }) {
  useMustSignIn(session);
  useTitle("Senders");
  const [senders, setSenders] = useState<Sender[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [search, setSearch] = useState("");
  const load = () => {
    setProblem(null);
    listSenders().then(setSenders, (error) => setProblem(asProblem(error)));
  };
  const isIn = isSignedIn(session);
  useEffect(() => void (isIn && load()), [isIn]);
  if (problem)
    return (
      <Shell session={session}>
        <ProblemView problem={problem} onRetry={load} />
      </Shell>
    );
  const shown = senders?.filter((sender) => textOf(sender).includes(search.trim().toLowerCase()));
  return (
    <Shell session={session}>
      <div class="page-head">
        <h1>Senders</h1>
        <div class="page-tools">
          <div class="search plain-search">
            <Icon name="search" />
            <input
              type="search"
              value={search}
              placeholder="Service, program, token, address"
              aria-label="Search senders"
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </div>
          <Button onClick={load}>Refresh</Button>
        </div>
      </div>
      {!session || !senders || !shown ? (
        <Loading label="Loading senders" />
      ) : senders.length === 0 ? (
        <HowToSend
          session={session}
          text={
            "Agents, collectors and scripts that send profiles are listed here with their " +
            "last error."
          }
        />
      ) : shown.length === 0 ? (
        <Empty title="Nothing found">
          <p>No sender’s service, program, token, address or error contains this text.</p>
        </Empty>
      ) : (
        <Table senders={shown} />
      )}
    </Shell>
  );
}
