/* retention_api: for how long the team keeps which continuous profiles, and which labels make series; apart from api.ts, since who reads a share does not need it. */
import { change, getJson, type Tenant } from "./api.ts";

export interface Rule {
  id: number;
  /** 1 is the first. */
  position: number;
  query: string;
  /** 0: for ever. */
  keep_s: number;
  totals_s: number | null;
}
export interface Rules {
  rules: Rule[];
  default_keep_s: number;
}
/** Durations as people write them; no position: where it is, or the last. */
export interface RuleWish {
  query: string;
  keep: string;
  totals?: string;
  position?: number;
}

/** In their order. */
export const listRules = () => getJson<Rules>("/api/v1/retention");
export const setRule = (wish: RuleWish) => change<Rule>("POST", "/api/v1/retention", wish);
export const removeRule = (id: number) => change<void>("DELETE", `/api/v1/retention/${id}`);
/** null: those of the server's setting. */
export const setSampleLabels = (sample_labels: string | null) => change<Tenant>("PATCH", "/api/v1/tenant", { sample_labels });
