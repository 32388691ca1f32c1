/* settings: the page of the settings, one section after the other. */
import type { Session } from "../../api/api.ts";
import { Loading, useTitle } from "../../ui/kit.tsx";
import { later } from "../../ui/later.tsx";
import { Shell, useMustSignIn } from "../../ui/shell.tsx";
import { Section } from "./section.tsx";
import { Audit } from "./audit.tsx";
import { FailedSignIns } from "./failed_sign_ins.tsx";
import { Password } from "./password.tsx";
import { People } from "./people.tsx";
import { Team } from "./team.tsx";
import { Tokens } from "./tokens.tsx";

const RetentionRules = later(
  async () => (await import("./retention.tsx")).RetentionRules,
).Component;
const SourceLinks = later(async () => (await import("./source_links.tsx")).SourceLinks).Component;
const SampleLabels = later(async () => (await import("./retention.tsx")).SampleLabels).Component;

export function SettingsPage({ session }: { session: Session | null }) {
  useMustSignIn(session);
  useTitle("Settings");
  if (!session?.user)
    return (
      <Shell session={session}>
        <Loading />
      </Shell>
    );
  const isOwner = session.scopes.includes("admin");
  const places: [string, string][] = [
    ["tokens", "Tokens"],
    ["password", "Password"],
    ["sign-ins", "Failed sign-ins"],
    ["team", "Team"],
  ];
  if (isOwner)
    places.push(
      ["people", "People"],
      ["retention", "Retention"],
      ["series", "Series labels"],
      ["source", "Source code"],
      ["audit", "Audit log"],
    );
  return (
    <Shell session={session}>
      <div class="page-head">
        <h1>Settings</h1>
        <nav class="places" aria-label="Settings">
          {places.map(([id, label]) => (
            <a key={id} href={`#${id}`}>
              {label}
            </a>
          ))}
        </nav>
      </div>
      <Tokens session={session} />
      <Password hasOld={session.user.has_password} />
      <FailedSignIns />
      <Team session={session} />
      {isOwner && <People />}
      {isOwner && (
        <>
          <Section
            id="retention"
            title="Retention"
            text={
              "How long continuous profiles are kept. If several rules match a series, the " +
              "first one applies."
            }
          >
            <RetentionRules />
          </Section>
          <Section
            id="series"
            title="Series labels"
            text={
              "Sample labels that split profiles into series, which are fast to list, " +
              "filter and graph. Other labels stay with the samples; filtering by them is " +
              "slower."
            }
          >
            <SampleLabels />
          </Section>
          <Section
            id="source"
            title="Source code"
            text={
              "Links from file and line to your repositories: in the table, in the peek " +
              "view and below the flame graph."
            }
          >
            <SourceLinks />
          </Section>
          <Audit />
        </>
      )}
    </Shell>
  );
}
