/*
 * visible_text: every text that Preact puts on a page, and what elements are called, goes through visible(): names, titles,
 * labels and comments stand in so many places that one would be forgotten.
 */
import { Fragment, options } from "preact";
import { visible } from "../model/visible_text_model.ts";

type Props = Record<string, unknown>;
const named = ["title", "aria-label"];

const cleaned = (child: unknown): unknown =>
  typeof child === "string" ? visible(child) : Array.isArray(child) ? child.map(cleaned) : child;

const before = options.vnode;
options.vnode = (vnode) => {
  const props = vnode.props as Props;
  if (typeof vnode.type === "string")
    for (const name of named)
      if (typeof props[name] === "string") props[name] = visible(props[name]);
  if ((typeof vnode.type === "string" || vnode.type === Fragment) && props.children !== undefined)
    props.children = cleaned(props.children);
  before?.(vnode);
};
