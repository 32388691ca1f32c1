/* share_dialogs: dialogs of a share: settings, choice of a comparison, report. */
import { useState } from "preact/hooks";
import {
  editShare,
  reportShare,
  type Problem,
  type Session,
  type Share,
  type ShareSettings,
} from "../../api/api.ts";
import { deleteTokenOf, listStoredShares } from "../../model/storage/browser_storage.ts";
import { formatAgo } from "../../model/text/units.ts";
import { asProblem, Button, Dialog, ErrorLine, Field, showMessage } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { isSignedIn } from "../../ui/shell.tsx";
import { viewQuery } from "../../views/view_address.ts";
import { cleanSettings, SettingsForm } from "../upload/settings_form.tsx";
import type { Opened } from "./share.tsx";

function EditDialog({
  share,
  session,
  onSaved,
  onClose,
}: {
  share: Share;
  session: Session | null;
  onSaved: () => void;
  onClose: () => void;
}) {
  const [settings, setSettings] = useState<ShareSettings>({
    title: share.title,
    description: share.description,
    visibility: share.visibility,
  });
  const [error, setError] = useState<Problem | null>(null);
  const save = async (event: Event) => {
    event.preventDefault();
    const patch: ShareSettings = {
      ...cleanSettings(settings),
      title: settings.title ?? "",
      description: settings.description ?? "",
    };
    if (patch.visibility === share.visibility && !patch.password) delete patch.visibility;
    try {
      await editShare(share.id, patch, deleteTokenOf(share.id));
      showMessage("Saved");
      onSaved();
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Dialog title="Share settings" onClose={onClose}>
      <form onSubmit={save}>
        <SettingsForm
          settings={settings}
          hasTeam={isSignedIn(session)}
          keepExpiry={
            share.expires_at ? `Unchanged: ${formatAgo(share.expires_at)}` : "Unchanged: never"
          }
          onChange={setSettings}
        />
        <ErrorLine error={error} />
        <div class="actions">
          <a
            class="button danger"
            href={
              `/p/${share.id}/delete` +
              (deleteTokenOf(share.id) ? "#" + deleteTokenOf(share.id) : "")
            }
          >
            <Icon name="trash" />
            <span>Delete…</span>
          </a>
          <Button look="primary" type="submit">
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/**
 * A pasted text: the id of a share of this server, a short link to resolve, or why it is neither.
 */
export type Pasted = { id: string } | { short: string } | { reason: string };

/**
 * Parses an id or an address: of a share's page, its embedded page, its files, or a short link.
 * origin is this server's.
 */
export function readPasted(text: string, origin: string): Pasted {
  const trimmed = text.trim();
  if (/^[0-9A-Za-z]{22}$/.test(trimmed)) return { id: trimmed };
  if (trimmed === "") return { reason: "" };
  if (!URL.canParse(trimmed, origin) || !/^(https?:\/\/|\/)/.test(trimmed))
    return { reason: "This is neither a link nor the id of a profile." };
  const url = new URL(trimmed, origin);
  if (url.origin !== origin)
    return {
      reason: `This link leads to ${url.host}. Download the profile there and share it here first.`,
    };
  const share = /^\/(?:p|embed)\/([0-9A-Za-z]{22})(?:[./]|$)(?!\.)/.exec(url.pathname);
  if (share) return { id: share[1] };
  const short = /^\/s\/[0-9A-Za-z]{22}$/.exec(url.pathname);
  return short ? { short: short[0] } : { reason: "This link does not lead to a single profile." };
}

/** Resolves a short link. */
async function follow(short: string): Promise<Pasted> {
  const response = await fetch(short, { method: "HEAD" });
  return response.ok
    ? readPasted(response.url, location.origin)
    : { reason: "This short link does not exist." };
}

function CompareDialog({
  share,
  onFiles,
  onClose,
}: Pick<ShareDialogProps, "share" | "onFiles" | "onClose">) {
  const [text, setText] = useState("");
  const others = listStoredShares()
    .filter((entry) => entry.id !== share.id)
    .slice(0, 6);
  const [lost, setLost] = useState("");
  const pasted = readPasted(text, location.origin);
  const reason = lost || ("reason" in pasted ? pasted.reason : "");
  const addressOf = (other: string) => `/d/${other}..${share.id}${viewQuery()}`;
  const go = async (event: Event) => {
    event.preventDefault();
    const found =
      "short" in pasted
        ? await follow(pasted.short).catch(() => ({ reason: "The server cannot be reached." }))
        : pasted;
    if ("id" in found) location.assign(addressOf(found.id));
    else if ("reason" in found) setLost(found.reason);
  };
  return (
    <Dialog title="Compare with another profile" onClose={onClose}>
      <form onSubmit={go}>
        <Field
          label="Link of the profile before"
          hint={reason || "The current profile is the one after. You can swap them later."}
        >
          {(id) => (
            <input
              id={id}
              value={text}
              placeholder={`${location.origin}/p/…`}
              onInput={(event) => (setText(event.currentTarget.value), setLost(""))}
            />
          )}
        </Field>
        <Field
          label="Or a file on this computer"
          hint="Nothing is uploaded until you confirm. You can also drop a file on the page."
        >
          {(id) => (
            <input
              id={id}
              type="file"
              onChange={({ currentTarget }) => (
                onClose(),
                onFiles([...(currentTarget.files ?? [])])
              )}
            />
          )}
        </Field>
        {others.length > 0 && (
          <ul class="choices">
            {others.map((entry) => (
              <li key={entry.id}>
                <a href={addressOf(entry.id)}>
                  {entry.title} <em>{formatAgo(entry.createdAt)}</em>
                </a>
              </li>
            ))}
          </ul>
        )}
        <div class="actions">
          <Button look="primary" type="submit" disabled={"reason" in pasted}>
            Compare
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function ReportDialog({ share, onClose }: { share: Share; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await reportShare(share.id, reason);
      showMessage("Report sent. Thank you.");
      onClose();
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Dialog title="Report this profile" onClose={onClose}>
      <form onSubmit={send}>
        <Field label="What is wrong with it?" hint="The operator of this server reads the report.">
          {(id) => (
            <textarea
              id={id}
              rows={3}
              required
              maxLength={2000}
              value={reason}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          )}
        </Field>
        <ErrorLine error={error} />
        <div class="actions">
          <Button look="primary" type="submit" disabled={!reason.trim()}>
            Report
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ShareDialogProps {
  opened: Opened;
  share: Share;
  session: Session | null;
  onChanged: () => void;
  onFiles: (files: File[]) => void;
  onClose: () => void;
}

export function ShareDialog({
  opened,
  share,
  session,
  onChanged,
  onFiles,
  onClose,
}: ShareDialogProps) {
  if (opened === "compare") return <CompareDialog {...{ share, onFiles, onClose }} />;
  if (opened === "report") return <ReportDialog share={share} onClose={onClose} />;
  return (
    <EditDialog
      share={share}
      session={session}
      onClose={onClose}
      onSaved={() => (onClose(), onChanged())}
    />
  );
}
