/*
 * page: one HTML file that holds the viewer and a tree, for a reader without this server or any network.
 *
 * The build writes the page's frame with script, worker and style in it, and a policy that names
 * their hashes and allows nothing else (build.mjs); here title, date and tree are put in, and the trees of
 * other groups where those are wanted. They stand in an element of a type that is no script's, packed and as base64: letters
 * that end no element.
 */
import { formatState, type ViewState } from "../state.ts";
import type { ColourMode, PartHue } from "../model/frame_colours.ts";
import { filterWords } from "./filter_words.ts";

export const maxPageBytes = 64 * 1024 * 1024;

const marks = {
  title: "<!--perfolio:title-->",
  facts: "<!--perfolio:facts-->",
  flame: "<!--perfolio:flame-->",
};

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string) => text.replace(/[&<>"]/g, (letter) => entities[letter]);

/** What the page in the file knows of itself. */
export interface PageFacts {
  title: string;
  /** Where it was made, in ISO 8601. */
  savedAt: string;
  /** How it is looked at first, as in the address bar. */
  query: string;
  /** Labels and rules that chose what is in it. */
  filters: string[];
  /** Of each tree in it what it is grouped by; the first is the one that was seen. */
  groups: string[];
  /** Of the whole profile, of which the trees may be a part: colours are those of the page that was saved. */
  hues: PageHues;
}

export type PageHues = Partial<Record<ColourMode, PartHue[]>>;

async function readFrame(): Promise<string> {
  const address =
    document.querySelector<HTMLMetaElement>('meta[name="perfolio-page-frame"]')?.content ?? "";
  const response = await fetch(address);
  if (!response.ok)
    throw new Error(
      `The viewer could not be loaded: the server responded with status ${response.status}. Reload the page and try again.`,
    );
  return response.text();
}

/** Labels, rules, zoom and sample type are in the trees already. */
export const ownState = (state: ViewState): ViewState => ({
  ...state,
  labels: [],
  rules: [],
  zoom: "",
  root: "",
  window: null,
  sampleType: "",
  extra: [],
});

/** A tree as write.ts packs it; none of its letters is a blank. */
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
    query: formatState(ownState(state)),
    filters: filterWords(state),
    groups,
    hues,
  };
  const [head, afterTitle] = frame.split(marks.title);
  const [beforeFacts, afterFacts] = afterTitle.split(marks.facts);
  const [beforeFlame, tail] = afterFacts.split(marks.flame);
  // "<" could begin the end of the element, or a comment in it.
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
      "The page would be too large for a browser to open. Filter the profile or zoom in first, or save it as pprof.",
    );
  return page;
}
