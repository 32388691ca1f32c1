/*
 * markdown: a safe subset of Markdown for descriptions and comments, as elements and never as HTML
 * text: paragraphs, headings, lists, block quotes, fenced code, `code`, **strong**, *emphasis*,
 * [links](https://…) and bare links. Everything else stays plain text.
 */
import type { ComponentChildren, VNode } from "preact";

const inline =
  /(`+)(.+?)\1|\*\*(.+?)\*\*|\*(?!\s)(.+?)\*|\[([^\]]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,:;!?])/;

const safeLink = (address: string) => /^(https?:\/\/|mailto:|\/(?!\/))/i.test(address);

function link(address: string, text: ComponentChildren): VNode {
  return (
    <a href={address} rel="noopener noreferrer nofollow ugc">
      {text}
    </a>
  );
}

function inlineMarkdown(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let rest = text;
  for (let match = inline.exec(rest); match; match = inline.exec(rest)) {
    if (match.index > 0) out.push(rest.slice(0, match.index));
    const [all, , code, strong, emphasis, label, address, bare] = match;
    if (code !== undefined) out.push(<code>{code.trim()}</code>);
    else if (strong !== undefined) out.push(<strong>{inlineMarkdown(strong)}</strong>);
    else if (emphasis !== undefined) out.push(<em>{inlineMarkdown(emphasis)}</em>);
    else if (bare !== undefined) out.push(link(bare, bare));
    else out.push(safeLink(address) ? link(address, label) : all);
    rest = rest.slice(match.index + all.length);
  }
  if (rest) out.push(rest);
  return out;
}

const bullet = /^\s{0,3}[-*+]\s+/;
const number = /^\s{0,3}\d{1,9}[.)]\s+/;
const heading = /^(#{1,6})\s+(.*?)\s*#*$/;
const fence = /^\s{0,3}```/;

function takeWhile(lines: string[], at: number, test: (line: string) => boolean): number {
  let end = at;
  while (end < lines.length && test(lines[end])) end++;
  return end;
}

const startsBlock = (line: string) =>
  line.trim() === "" ||
  fence.test(line) ||
  heading.test(line) ||
  line.startsWith(">") ||
  bullet.test(line) ||
  number.test(line);

/** The block that begins at line `at`, and the index of the line after it. */
function block(lines: string[], at: number): [VNode, number] {
  const line = lines[at];
  if (fence.test(line)) {
    const end = takeWhile(lines, at + 1, (next) => !fence.test(next));
    return [
      <pre tabIndex={0}>
        <code>{lines.slice(at + 1, end).join("\n")}</code>
      </pre>,
      end + 1,
    ];
  }
  const head = heading.exec(line);
  if (head) {
    // The share's title is the page's only h1, so a description starts at h2.
    const Tag = `h${Math.min(6, head[1].length + 1)}` as "h2";
    return [<Tag>{inlineMarkdown(head[2])}</Tag>, at + 1];
  }
  if (line.startsWith(">")) {
    const end = takeWhile(lines, at, (next) => next.startsWith(">"));
    const text = lines.slice(at, end).map((next) => next.replace(/^>\s?/, ""));
    return [<blockquote>{inlineMarkdown(text.join(" "))}</blockquote>, end];
  }
  for (const [mark, Tag] of [
    [bullet, "ul"],
    [number, "ol"],
  ] as const) {
    if (!mark.test(line)) continue;
    const end = takeWhile(lines, at, (next) => mark.test(next));
    const items = lines
      .slice(at, end)
      .map((next) => <li>{inlineMarkdown(next.replace(mark, ""))}</li>);
    return [<Tag>{items}</Tag>, end];
  }
  const end = Math.max(
    at + 1,
    takeWhile(lines, at, (next) => !startsBlock(next)),
  );
  return [<p>{inlineMarkdown(lines.slice(at, end).join("\n"))}</p>, end];
}

export function Markdown({ text }: { text: string }) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const blocks: VNode[] = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at].trim() === "") {
      at++;
      continue;
    }
    const [node, next] = block(lines, at);
    blocks.push(node);
    at = next;
  }
  return <div class="markdown">{blocks}</div>;
}
