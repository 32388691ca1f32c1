/* source_links_api: a team's rules of where its source code is read; apart from api.ts, since who reads a share does not need it. */
import { change, getJson } from "./api.ts";
import type { SourceRule } from "../model/source_link.ts";

export type SourceRuleWish = Pick<
  SourceRule,
  "url" | "path_prefix" | "build_id" | "label" | "revision" | "audience"
>;

/** The one that counts first, first. */
export const listSourceLinks = async () =>
  (await getJson<{ links: SourceRule[] }>("/api/v1/source-links")).links;
export const addSourceLink = (wish: SourceRuleWish) =>
  change<SourceRule>("POST", "/api/v1/source-links", wish);
export const removeSourceLink = (id: number) =>
  change<void>("DELETE", `/api/v1/source-links/${id}`);
