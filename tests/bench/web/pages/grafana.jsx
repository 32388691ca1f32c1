// @grafana/flamegraph with nothing around it; its table and search come when showAll is called.
import { createTheme } from "@grafana/data";
import { FlameGraph } from "@grafana/flamegraph";
import { createRoot } from "react-dom/client";

const theme = createTheme({ colors: { mode: "light" } });
const response = await fetch(new URLSearchParams(location.search).get("tree"));
const { names, level, label, value, self } = await response.json();
const field = (name, type, values, config = {}) => ({ name, type, values, config });
const enumeration = { type: { enum: { text: names } } };
const data = {
  name: "tree", length: level.length,
  fields: [field("level", "number", level), field("label", "enum", label, enumeration), field("value", "number", value, { unit: "ns" }), field("self", "number", self, { unit: "ns" })],
};

/** The middle of the widest block below the root, as a fraction of the width. */
function widest() {
  let [start, best, middle] = [0, -1, 0.5];
  for (let i = 1; i < level.length; i++) {
    if (level[i] !== 1) continue;
    if (value[i] > best) [best, middle] = [value[i], (start + value[i] / 2) / value[0]];
    start += value[i];
  }
  return middle;
}

const root = createRoot(document.getElementById("chart"));
const show = (showFlameGraphOnly) =>
  root.render(<FlameGraph data={data} getTheme={() => theme} showFlameGraphOnly={showFlameGraphOnly} showAnalyzeWithAssistant={false} disableCollapsing />);
globalThis.showAll = () => show(false);
globalThis.widestShare = widest();
show(true);
