/*
 * old_names: expressions of links that were made before addresses had names, when an address was `app+0x2a10`. The server
 * knows how the functions are called now in which such addresses lie (lib/profile/report/raw_path.h).
 */
import { exactly } from "./escape_regex.ts";

/** May the expression be of an address? As the server asks it. */
export const isOfAddress = (text: string): boolean => text.includes("0x");

/** The expression, or one that finds those names too. */
export const widened = (text: string, names: readonly string[] = []): string =>
  [text, ...names.map(exactly)].join("|");
