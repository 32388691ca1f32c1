/*
 * retry_busy: repeats a request that the server refused as overloaded (503) after the time that
 * it states.
 */

const TRIES_MAX = 5;
const LONGEST_S = 30;

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const secondsOf = (error: unknown): number | null => {
  const { status, retryAfter } = (error ?? {}) as { status?: unknown; retryAfter?: unknown };
  return status === 503 && typeof retryAfter === "number" ? retryAfter : null;
};

/**
 * A Problem with status 503 and a retry time means that nothing was done, so the request can be
 * repeated.
 */
export async function retryWhileBusy<T>(
  send: () => Promise<T>,
  pause: (ms: number) => Promise<void> = sleep,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      const seconds = secondsOf(error);
      if (seconds === null || seconds > LONGEST_S || attempt === TRIES_MAX) throw error;
      await pause(seconds * 1000);
    }
  }
}
