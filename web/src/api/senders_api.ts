/*
 * senders_api: requests for the sources of continuous profiles. Separate from api.ts because
 * readers of a share do not need it.
 */
import { getJson } from "./api.ts";

export interface Sender {
  service: string;
  token_id: number | null;
  token_name: string | null;
  user: string | null;
  agent: string;
  version: string | null;
  protocol: string;
  address: string;
  first_seen_at: string;
  last_seen_at: string;
  batches: number;
  profiles: number;
  samples: number;
  cut_strings: number;
  errors: number;
  last_error: string | null;
  last_error_at: string | null;
}

/** Most recently seen first. */
export const listSenders = async (): Promise<Sender[]> =>
  (await getJson<{ senders: Sender[] }>("/api/v1/senders")).senders;
