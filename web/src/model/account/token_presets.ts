/*
 * token_presets: the sets of scopes that tokens usually need. The form that creates a token and the
 * list of tokens use the same names. Only the scopes of a token are stored, so a token shows the
 * name of the preset with the same scopes.
 */

export interface TokenPreset {
  name: string;
  purpose: string;
  scopes: readonly string[];
}

export const tokenPresets: Record<string, TokenPreset> = {
  ci: { name: "CI", purpose: "Share and compare profiles", scopes: ["read", "share"] },
  agent: {
    name: "Agent",
    purpose: "Send continuous profiles and symbol tables",
    scopes: ["ingest", "debuginfo"],
  },
  reader: { name: "Read-only", purpose: "Query and download profiles", scopes: ["read"] },
  admin: {
    name: "Admin",
    purpose: "Manage people, tokens and settings, and everything above",
    scopes: ["ingest", "read", "share", "debuginfo", "admin"],
  },
};

/** The form's choice without a preset: each scope has a checkbox. */
export const customName = "Custom";

const isSame = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((scope) => b.includes(scope));

/**
 * The name of the preset that has exactly these scopes, in any order. Operator tokens are created
 * only on the command line.
 */
export const presetNameOf = (scopes: readonly string[]): string =>
  scopes.includes("operator")
    ? "Operator"
    : (Object.values(tokenPresets).find((preset) => isSame(preset.scopes, scopes))?.name ??
      customName);
