/*
 * visible_text: applies visible() to every text, title and aria-label that Preact renders. Names,
 * titles, labels and comments appear in so many places that one would be forgotten.
 */
import { Fragment, options } from "preact";
import { visible } from "../model/text/visible_text_model.ts";

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
