/*
 * first_profile: shown instead of a graph when there is no data: how to send profiles, or where to
 * look.
 */
import type { Session } from "../api/api.ts";
import { hasProfiles } from "../api/explore_api.ts";
import { HowToSend } from "../pages/how_to_send.tsx";
import { Button, Empty, Loading, ProblemView } from "../ui/kit.tsx";
import { useLoaded } from "./use_selection.ts";

interface FirstProfileProps {
  session: Session;
  nowMs: number;
  onLookBack: () => void;
}

export function FirstProfile({ session, nowMs, onLookBack }: FirstProfileProps) {
  const any = useLoaded(String(nowMs), (signal) => hasProfiles(nowMs, signal));
  if (any.problem) return <ProblemView problem={any.problem} onRetry={any.retry} />;
  if (any.value === null) return <Loading label="Looking for profiles" />;
  if (!any.value)
    return (
      <HowToSend
        session={session}
        text="Explore merges continuous profiles, draws them over time and compares them."
      />
    );
  return (
    <Empty title="No profiles in this time range">
      <p>The team has profiles at other times.</p>
      <Button look="primary" onClick={onLookBack}>
        Show the last 30 days
      </Button>
    </Empty>
  );
}
