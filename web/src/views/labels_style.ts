/*
 * labels_style: how the labels pane looks; it comes with the pane's chunk, so that no page that shows
 * other views carries it. A sheet that a script constructs is no inline style, which the policy forbids.
 */
const text = `
.labels {
  position: absolute;
  inset: 0;
  overflow: auto;
  padding: 12px 20px 40px;
}
.labels-head,
.label-section > header,
.label-more {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 4px 14px;
  margin: 0;
  color: var(--muted);
  font-size: 13px;
}
.labels-head input {
  width: 26ch;
}
.labels-note {
  color: var(--muted);
  font-size: 13px;
}
.label-section {
  max-width: 1100px;
  margin-top: 18px;
}
.label-section h3 {
  margin: 0;
  color: var(--text);
  font-size: 15px;
}
.label-section > header p {
  margin: 0;
}
.label-section ul {
  margin: 4px 0 0;
  padding: 0;
  list-style: none;
}
.label-row {
  display: flex;
  align-items: center;
  border-bottom: 1px solid var(--line);
}
.label-value {
  position: relative;
  display: grid;
  flex: 1;
  grid-template-columns: minmax(0, 1fr) auto 7ch 13ch;
  gap: 14px;
  min-width: 0;
  padding: 5px 8px;
  border: 0;
  background: none;
  color: inherit;
  font: inherit;
  font-size: 13px;
  text-align: left;
  cursor: pointer;
}
.label-value:hover {
  background: var(--sunken);
}
.label-value[aria-pressed="true"] {
  background: var(--accent-soft);
}
.label-value[aria-pressed="true"] > .label-name {
  font-weight: 600;
}
.label-bar {
  position: absolute;
  inset: 2px auto 2px 0;
  border-radius: 3px;
  background: var(--bar);
  pointer-events: none;
}
.label-bar.base {
  background: var(--bar-base);
}
.label-value > span,
.label-name {
  position: relative;
}
.label-name {
  overflow: hidden;
  font-family: var(--mono);
  text-overflow: ellipsis;
  white-space: nowrap;
}
.none .label-name {
  font-family: inherit;
  font-style: italic;
}
.excluded .label-name {
  text-decoration: line-through;
}
.label-value > span {
  text-align: right;
  font-variant-numeric: tabular-nums;
  white-space: nowrap;
}
.label-samples {
  color: var(--muted);
}
.label-share.more {
  color: var(--more);
}
.label-share.less {
  color: var(--less);
}
.label-histogram {
  display: flex;
  flex-wrap: wrap;
  justify-content: space-between;
  max-width: 620px;
  margin-top: 6px;
  color: var(--muted);
  font-size: 12px;
}
.label-columns {
  display: flex;
  flex: 1 0 100%;
  height: 52px;
  border-bottom: 1px solid var(--line-strong);
}
.label-columns button {
  display: flex;
  flex: 1;
  align-items: flex-end;
  padding: 0 1px;
  border: 0;
  background: none;
  cursor: pointer;
}
.label-columns button:hover {
  background: var(--sunken);
}
.label-columns i {
  flex: 1;
  border-radius: 2px 2px 0 0;
  background: var(--ember-2);
}
@media (max-width: 640px) {
  .labels {
    padding: 12px 12px 40px;
  }
  .label-value {
    grid-template-columns: minmax(0, 1fr) auto 6ch;
    gap: 10px;
  }
  .label-samples {
    display: none;
  }
}
`;

let isThere = false;

export function styleLabels(): void {
  if (isThere) return;
  isThere = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
