/*
 * page: creates one HTML file with the viewer and a tree, for a reader without this server or a
 * network.
 *
 * The build creates the frame of the page with script, worker and style, and a policy that allows
 * only their hashes (build.mjs). This module inserts title, date and tree, and the trees of other
 * groups if requested. The trees are compressed and base64-encoded in an element with a type that
 * is not a script; base64 contains no character that could end the element.
 */
import { formatState, type ViewState } from "../view_state.ts";
import type { ColourMode, PartHue } from "../model/colours/frame_colours.ts";
import { describeLabelRule } from "../model/rules/labels.ts";
import { describeRule } from "../views/controls/rules.tsx";

export const maxPageBytes = 64 * 1024 * 1024;

const marks = {
  title: "<!--perfolio:title-->",
  facts: "<!--perfolio:facts-->",
  flame: "<!--perfolio:flame-->",
};

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string) => text.replace(/[&<>"]/g, (letter) => entities[letter]);

/** The properties of the saved page. */
export interface PageFacts {
  title: string;
  /** When it was created, in ISO 8601. */
  savedAt: string;
  /** The initial view, as in the address bar. */
  query: string;
  /** The labels and rules that selected the contents. */
  filters: string[];
  /** The grouping of each tree in it; the first is the visible one. */
  groups: string[];
  /**
   * The hues of the whole profile in the page that was saved, so that a part of it has the same
   * colours.
   */
  hues: PageHues;
}

export type PageHues = Partial<Record<ColourMode, PartHue[]>>;

async function readFrame(): Promise<string> {
  const address =
    document.querySelector<HTMLMetaElement>('meta[name="perfolio-page-frame"]')?.content ?? "";
  const response = await fetch(address);
  if (!response.ok)
    throw new Error(
      `The viewer could not be loaded: the server responded with status ${response.status}. ` +
        "Reload the page and try again.",
    );
  return response.text();
}

/**
 * The view without the settings that the trees already contain: labels, rules, zoom and sample
 * type.
 */
export const stateOfPage = (state: ViewState): ViewState => ({
  ...state,
  labels: [],
  rules: [],
  zoom: "",
  root: "",
  window: null,
  sampleType: "",
  extra: [],
});

/**
 * Describes the labels and rules of the saved view. The trees in the file contain only their
 * result.
 */
export function describeFilters({ labels, rules }: Pick<ViewState, "labels" | "rules">): string[] {
  const active = rules.filter((rule) => !rule.isOff);
  return [...labels.map(describeLabelRule), ...active.map(describeRule)].map((words) =>
    words.filter(Boolean).join(" "),
  );
}

/** A tree as packed by write.ts; it contains no blank. */
export interface PackedTree {
  group: string;
  parts: BlobPart[];
}

export async function makePage(
  trees: readonly PackedTree[],
  { title, state, hues }: { title: string; state: ViewState; hues: PageHues },
): Promise<Blob> {
  const frame = await readFrame();
  const groups = trees.map(({ group }) => group);
  const facts: PageFacts = {
    title,
    savedAt: new Date().toISOString(),
    query: formatState(stateOfPage(state)),
    filters: describeFilters(state),
    groups,
    hues,
  };
  const [head, afterTitle] = frame.split(marks.title);
  const [beforeFacts, afterFacts] = afterTitle.split(marks.facts);
  const [beforeFlame, tail] = afterFacts.split(marks.flame);
  // "<" could start the end tag of the element or a comment in it.
  const json = JSON.stringify(facts).replace(/</g, "\\u003c");
  const page = new Blob(
    [
      head,
      escape(title),
      beforeFacts,
      json,
      beforeFlame,
      ...trees.flatMap(({ parts }) => [...parts, "\n"]),
      tail,
    ],
    { type: "text/html" },
  );
  if (page.size > maxPageBytes)
    throw new Error(
      "The page would be too large for a browser to open. Filter the profile or zoom in first, " +
        "or save it as pprof.",
    );
  return page;
}
