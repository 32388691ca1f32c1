/* shares: the team's profiles with search and pages; two of them can be compared. */
import { useEffect, useRef, useState } from "preact/hooks";
import { listShares, type Problem, type Session, type Share } from "../../api/api.ts";
import { formatAgo, formatBytes, formatDate } from "../../model/text/units.ts";
import { asProblem, Button, Empty, Loading, Name, ProblemView, useTitle } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { isSignedIn, Shell, useMustSignIn } from "../../ui/shell.tsx";
import { writeAddress } from "../../views/view_address.ts";
import { nameOf, visibilityNames } from "../share/share.tsx";

/** Waits for a pause in typing, in milliseconds, before a changed search is sent. */
const typingPauseMs = 180;

function useShares(search: string, isReady: boolean) {
  const [shares, setShares] = useState<Share[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (!isReady) return;
    const abort = new AbortController();
    const timer = setTimeout(
      () => {
        listShares(search, "", abort.signal).then(
          (page) => {
            setProblem(null);
            setShares(page.shares);
            setNext(page.next_cursor);
          },
          (error) => !abort.signal.aborted && setProblem(asProblem(error)),
        );
      },
      shares === null ? 0 : typingPauseMs,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [search, isReady]);
  const more = async () => {
    if (!next) return;
    try {
      const page = await listShares(search, next);
      setShares((old) => [...(old ?? []), ...page.shares]);
      setNext(page.next_cursor);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return { shares, next, problem, more };
}

function ShareRow({
  share,
  isChosen,
  onChoose,
}: {
  share: Share;
  isChosen: boolean;
  onChoose: () => void;
}) {
  const types = share.sample_types.map((type) => type.type).filter(Boolean);
  return (
    <tr class={isChosen ? "chosen" : ""}>
      <td class="pick">
        <input
          type="checkbox"
          checked={isChosen}
          onChange={onChoose}
          aria-label={`Choose ${nameOf(share)} to compare`}
        />
      </td>
      <th scope="row">
        <a href={`/p/${share.id}`}>
          <Name text={nameOf(share)} />
        </a>
        <span class="hint">
          {Object.entries(share.labels ?? {})
            .map(([key, value]) => `${key}=${value}`)
            .concat(share.filename && share.title ? [share.filename] : [])
            .map((text, i) => (
              <>
                {i > 0 && " · "}
                <Name text={text} />
              </>
            ))}
        </span>
      </th>
      <td class="wide-only">
        {types.slice(0, 3).join(", ")}
        {types.length > 3 ? ", …" : ""}
      </td>
      <td class="wide-only number">{formatBytes(share.raw_bytes)}</td>
      <td class="wide-only number">{share.views}</td>
      <td title={formatDate(share.created_at)}>{formatAgo(share.created_at)}</td>
      <td class="wide-only">
        {visibilityNames[share.visibility]}
        {share.expires_at && <span class="hint">expires {formatAgo(share.expires_at)}</span>}
      </td>
    </tr>
  );
}

interface ShareTableProps {
  shares: Share[];
  chosen: readonly string[];
  onChoose: (id: string) => void;
}

function ShareTable({ shares, chosen, onChoose }: ShareTableProps) {
  return (
    <table class="list">
      <thead>
        <tr>
          <td class="pick" />
          <th scope="col">Profile</th>
          <th scope="col" class="wide-only">
            Types
          </th>
          <th scope="col" class="wide-only number">
            Size
          </th>
          <th scope="col" class="wide-only number">
            Views
          </th>
          <th scope="col">Shared</th>
          <th scope="col" class="wide-only">
            Visibility
          </th>
        </tr>
      </thead>
      <tbody>
        {shares.map((share) => (
          <ShareRow
            key={share.id}
            share={share}
            isChosen={chosen.includes(share.id)}
            onChoose={() => onChoose(share.id)}
          />
        ))}
      </tbody>
    </table>
  );
}

function NoShares({ isSearch }: { isSearch: boolean }) {
  return (
    <Empty title={isSearch ? "Nothing found" : "No profiles yet"}>
      <p>
        {isSearch
          ? "No title, file name or label of your team’s profiles contains this text."
          : "Profiles that your team shares while signed in, or pushes with one of its " +
            "tokens, are listed here."}
      </p>
      {!isSearch && (
        <a class="button primary" href="/">
          <span>Share a profile</span>
        </a>
      )}
    </Empty>
  );
}

export function SharesPage({ session }: { session: Session | null }) {
  useMustSignIn(session);
  useTitle("Profiles");
  const [search, setSearch] = useState(() => new URLSearchParams(location.search).get("q") ?? "");
  const [chosen, setChosen] = useState<string[]>([]);
  const { shares, next, problem, more } = useShares(search, isSignedIn(session));
  const input = useRef<HTMLInputElement>(null);
  const seek = (text: string) => {
    setSearch(text);
    writeAddress(text ? `/shares?q=${encodeURIComponent(text)}` : "/shares", "replace");
  };
  // At most two are chosen: a third one replaces the first.
  const choose = (id: string) =>
    setChosen((old) =>
      old.includes(id) ? old.filter((one) => one !== id) : [...old.slice(-1), id],
    );
  // The older profile is "before".
  const pair = (shares ?? [])
    .filter((share) => chosen.includes(share.id))
    .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  if (problem)
    return (
      <Shell session={session}>
        <ProblemView problem={problem} />
      </Shell>
    );
  return (
    <Shell session={session}>
      <div class="page-head">
        <h1>{session?.tenant?.name ? `Profiles of ${session.tenant.name}` : "Profiles"}</h1>
        <div class="page-tools">
          <div class="search plain-search">
            <Icon name="search" />
            <input
              ref={input}
              type="search"
              value={search}
              placeholder="Title, file, label"
              aria-label="Search profiles"
              onInput={(event) => seek(event.currentTarget.value)}
            />
          </div>
          <Button
            icon="compare"
            disabled={pair.length !== 2}
            onClick={() => location.assign(`/d/${pair[0].id}..${pair[1].id}`)}
            title="Choose two profiles"
          >
            Compare
          </Button>
          <a class="button primary" href="/">
            <Icon name="plus" />
            <span>Share</span>
          </a>
        </div>
      </div>
      {!shares ? (
        <Loading label="Loading profiles" />
      ) : shares.length === 0 ? (
        <NoShares isSearch={search !== ""} />
      ) : (
        <>
          <ShareTable shares={shares} chosen={chosen} onChoose={choose} />
          {next && (
            <p class="pager">
              <Button onClick={() => void more()}>Show more</Button>
            </p>
          )}
        </>
      )}
    </Shell>
  );
}
