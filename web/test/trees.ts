/* trees: trees that several tests use, and their conversion to a flame. */
import { decodeFlame, type Flame } from "../src/model/tree/flame.ts";
import { encodeFlame } from "./encode_flame.mjs";

export interface Tree {
  name: string;
  self?: number;
  base?: number;
  file?: string;
  line?: number;
  mapping?: string;
  address?: number;
  flags?: number;
  children?: Tree[];
}

export function decode(tree: Tree, options = {}): Flame {
  const bytes: Buffer = encodeFlame(tree, options);
  return decodeFlame(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
  );
}

/** Nodes in preorder: root, a, c, d, b; a has a self value of 2 of its 6, at its right end. */
export const small: Tree = {
  name: "root",
  children: [
    {
      name: "a",
      self: 2,
      children: [
        { name: "c", self: 3 },
        { name: "d", self: 1 },
      ],
    },
    { name: "b", self: 4 },
  ],
};

/** A tree of many nodes whose numbers do not depend on Math.random. */
export function bigTree(count: number, spread: number): Tree {
  let seed = 7;
  const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32;
  const root: Tree = { name: "root", children: [] };
  const all = [root];
  for (let i = 1; i < count; i++) {
    const parent = all[Math.max(0, all.length - 1 - Math.floor(random() * spread))];
    const node: Tree = {
      name: `f${Math.floor(random() * 50)}`,
      self: Math.floor(random() * 100),
      children: [],
    };
    parent.children!.push(node);
    all.push(node);
  }
  return root;
}
