// A CommonJS package whose default export a bundler does not find from an .mjs file.
export { Scrollbars as default } from "../../../../build/bench-web/packages/node_modules/react-custom-scrollbars-2/lib/index.js";
