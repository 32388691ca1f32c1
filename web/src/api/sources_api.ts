/*
 * sources_api: requests for the sources of continuous profiles. Separate from api.ts because
 * readers of a share do not need it. A source is a service with the token, program, protocol and
 * address that sends its profiles.
 */
import { getJson } from "./api.ts";

export interface ProfileSource {
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
export const listSources = async (): Promise<ProfileSource[]> =>
  (await getJson<{ sources: ProfileSource[] }>("/api/v1/sources")).sources;
