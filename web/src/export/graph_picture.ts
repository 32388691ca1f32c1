/*
 * graph_picture: the call graph as SVG and PNG, including the part that is scrolled out of view.
 * The elements of the page are copied with the colours and fonts of their computed style; elements
 * that only serve interaction are left out.
 */
import { inXml, maxCanvasPx, pngOf } from "./pictures.ts";

const namespace = "http://www.w3.org/2000/svg";
const places = ["d", "x", "y", "width", "height", "rx"];
const styles = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "paint-order",
  "text-anchor",
  "font-size",
  "font-weight",
];
const marginPx = 8;

/**
 * The group that contains the graph; its own transform is the camera's, which the picture leaves
 * out. null if no graph is visible.
 */
export const graphShown = () => document.querySelector<SVGGElement>(".graph-view svg > g");

function copyOf(element: Element, isOutermost = false): Element {
  const made = document.createElementNS(namespace, element.localName);
  for (const name of isOutermost ? places : [...places, "transform"])
    if (element.hasAttribute(name)) made.setAttribute(name, element.getAttribute(name)!);
  const style = getComputedStyle(element);
  // Groups inherit everything except opacity to their children, which set their own styles.
  for (const name of element.localName === "g" ? ["opacity"] : styles)
    made.setAttribute(name, style.getPropertyValue(name));
  const label = element.getAttribute("aria-label");
  if (label)
    made.append(
      Object.assign(document.createElementNS(namespace, "title"), { textContent: label }),
    );
  for (const child of element.children)
    if (child.getAttribute("stroke") !== "transparent") made.append(copyOf(child));
  if (element.localName === "text") made.textContent = element.textContent;
  return made;
}

export function graphToSvg(graph: SVGGElement, title: string): string {
  const { x, y, width, height } = graph.getBBox();
  const [wide, high] = [width + 2 * marginPx, height + 2 * marginPx];
  const page = getComputedStyle(document.body);
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("width", String(Math.ceil(wide)));
  svg.setAttribute("height", String(Math.ceil(high)));
  svg.setAttribute("viewBox", [x - marginPx, y - marginPx, wide, high].join(" "));
  svg.setAttribute("font-family", page.fontFamily);
  const ground = document.createElementNS(namespace, "rect");
  for (const [name, value] of Object.entries({
    x: x - marginPx,
    y: y - marginPx,
    width: wide,
    height: high,
    fill: page.backgroundColor,
  }))
    ground.setAttribute(name, String(value));
  svg.append(
    Object.assign(document.createElementNS(namespace, "title"), { textContent: title }),
    ground,
    copyOf(graph, true),
  );
  return (
    `<?xml version="1.0" encoding="UTF-8"?>\n` +
    `${inXml(new XMLSerializer().serializeToString(svg))}\n`
  );
}

export async function graphToPng(graph: SVGGElement): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(graphToSvg(graph, ""))}`;
  await image.decode();
  const ratio = Math.min(
    2,
    Math.max(1, devicePixelRatio),
    maxCanvasPx / Math.max(image.width, image.height),
  );
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.width * ratio);
  canvas.height = Math.round(image.height * ratio);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return pngOf(canvas);
}
