/*
 * commands: shell commands that reach this server when pasted.
 *
 * If the server's certificate is of its own authority, no tool trusts it. Then the certificate of
 * the authority is downloaded once, and every command names that file. With any other certificate,
 * the commands are short.
 */
import type { Session } from "../api/api.ts";
import { CopyField } from "../ui/kit.tsx";

const caFile = "perfolio-ca.crt";

/** The commands by tool. */
export function commandsFor(session: Session, origin: string) {
  const isLocal = session.has_local_ca;
  // Without a token, the request is refused or creates an anonymous share that is not in the team's
  // list.
  const needsToken = session.user !== undefined || !session.anonymous_sharing;
  const settings = isLocal ? `PERFOLIO_URL=${origin} PERFOLIO_CA_FILE=${caFile} ` : "";
  return {
    perfolio: (rest: string) => `${settings}perfolio ${rest}`,
    needsToken,
    /** The agent reads its token from a file that only root can read. */
    agent:
      `sudo perfolio-agent --server=${origin} --token-file=/etc/perfolio/token` +
      (isLocal ? ` --ca-file=${caFile}` : ""),
    /** The shell inserts the token if one is needed. */
    curl: (rest: string) =>
      `curl ${needsToken ? '-H "Authorization: Bearer $PERFOLIO_TOKEN" ' : ""}` +
      `${isLocal ? `--cacert ${caFile} ` : ""}${rest}`,
    pprof: (address: string) =>
      `${isLocal ? `SSL_CERT_FILE=${caFile} ` : ""}go tool pprof ${address}`,
    /** Stores the server and its token. */
    login:
      `perfolio login ${needsToken ? "" : "--anonymous "}` +
      `${isLocal ? `--ca-file ${caFile} ` : ""}${origin}`,
    /** Downloads the certificate and shows its fingerprint for comparison; "" if not needed. */
    trust: isLocal
      ? `curl -kfsSo ${caFile} ${origin}/ca.crt && openssl x509 -in ${caFile} -noout ` +
        "-fingerprint -sha256"
      : "",
  };
}

export function Trust({ line }: { line: string }) {
  return (
    <>
      <p>
        This server uses its own certificate authority, which tools do not trust yet. Download its
        CA certificate once, and compare the fingerprint with the one that the server printed at
        startup. The other commands use the file.
      </p>
      <CopyField what="Command" text={line} />
    </>
  );
}
