/*
 * sources: the page that lists the sources of the team's continuous profiles with service, program,
 * token, address, time of the last request, number of profiles and samples, and errors.
 */
import { useEffect, useState } from "preact/hooks";
import type { Problem, Session } from "../../api/api.ts";
import { formatAgo, formatCount, formatDate } from "../../model/text/units.ts";
import { listSources, type ProfileSource } from "../../api/sources_api.ts";
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
const isFailing = ({ last_error_at, last_seen_at }: ProfileSource) =>
  last_error_at !== null && last_error_at >= last_seen_at;
const byOf = ({ token_id, token_name, user }: ProfileSource) =>
  token_name ?? user ?? (token_id === null ? "a former member" : "a revoked token");
const textOf = (source: ProfileSource) =>
  [
    source.service,
    source.agent,
    source.address,
    byOf(source),
    protocolNames[source.protocol],
    source.last_error,
  ]
    .join("\n")
    .toLowerCase();

function Row({ source }: { source: ProfileSource }) {
  return (
    <tr>
      <th scope="row">
        <strong class="source-name">
          {source.service ? <Name text={source.service} /> : "unknown service"}
        </strong>
        <span class="hint">
          {protocolNames[source.protocol]} ·{" "}
          {source.agent ? <Name text={source.agent} /> : "unknown program"}
        </span>
        <span class="hint source-more">
          <Name text={byOf(source)} /> · {source.address}
        </span>
        {source.cut_strings > 0 && (
          <span class="hint">
            {formatCount(source.cut_strings)}
            {source.cut_strings === 1
              ? " name was truncated because it was"
              : " names were truncated because they were"}{" "}
            longer than your team’s limit
          </span>
        )}
        {source.last_error !== null && (
          <span class={`source-error ${isFailing(source) ? "failing" : "hint"}`}>
            {isFailing(source) && <Icon name="alert" />}
            <span>
              {isFailing(source) ? "Failing, " : "Last error, "}
              {formatAgo(source.last_error_at!)}: <Name text={source.last_error} />
            </span>
          </span>
        )}
      </th>
      <td class="wide-only">
        <Name text={source.version ?? ""} />
      </td>
      <td class="wide-only">
        <Name text={byOf(source)} />
      </td>
      <td class="wide-only">{source.address}</td>
      <td class="number">{formatCount(source.profiles)}</td>
      <td class="number wide-only">{formatCount(source.samples)}</td>
      <td class="number wide-only">{formatCount(source.errors)}</td>
      <td class="source-seen" title={formatDate(source.last_seen_at)}>
        {formatAgo(source.last_seen_at)}
      </td>
    </tr>
  );
}

function Table({ sources }: { sources: ProfileSource[] }) {
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
        {sources.map((source, i) => (
          <Row key={i} source={source} />
        ))}
      </tbody>
    </table>
  );
}

export function SourcesPage({ session }: { session: Session | null }) {
  useMustSignIn(session);
  useTitle("Sources");
  const [sources, setSources] = useState<ProfileSource[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [search, setSearch] = useState("");
  const load = () => {
    setProblem(null);
    listSources().then(setSources, (error) => setProblem(asProblem(error)));
  };
  const isIn = isSignedIn(session);
  useEffect(() => void (isIn && load()), [isIn]);
  if (problem)
    return (
      <Shell session={session}>
        <ProblemView problem={problem} onRetry={load} />
      </Shell>
    );
  const shown = sources?.filter((source) => textOf(source).includes(search.trim().toLowerCase()));
  return (
    <Shell session={session}>
      <div class="page-head">
        <h1>Sources</h1>
        <div class="page-tools">
          <div class="search plain-search">
            <Icon name="search" />
            <input
              type="search"
              value={search}
              placeholder="Service, program, token, address"
              aria-label="Search sources"
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </div>
          <Button onClick={load}>Refresh</Button>
        </div>
      </div>
      {!session || !sources || !shown ? (
        <Loading label="Loading sources" />
      ) : sources.length === 0 ? (
        <HowToSend
          session={session}
          text={
            "Agents, collectors and scripts that send profiles are listed here with their " +
            "last error."
          }
        />
      ) : shown.length === 0 ? (
        <Empty title="Nothing found">
          <p>No source’s service, program, token, address or error contains this text.</p>
        </Empty>
      ) : (
        <Table sources={shown} />
      )}
    </Shell>
  );
}
