// d3-flame-graph as its documentation shows it, without boxes that are narrower than a pixel.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";

const response = await fetch(new URLSearchParams(location.search).get("tree"));
const chart = flamegraph().width(1600).minFrameSize(1).transitionDuration(0).inverted(true);
select("#chart").datum(await response.json()).call(chart);
globalThis.chart = chart;
