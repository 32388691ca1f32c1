/* request_order: repeats a request that the server refused as overloaded (503) after the time that it states. */

const TRIES_MAX = 5;
const LONGEST_S = 30;

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const secondsOf = (error: unknown): number | null => {
  const { status, retryAfter } = (error ?? {}) as { status?: unknown; retryAfter?: unknown };
  return status === 503 && typeof retryAfter === "number" ? retryAfter : null;
};

/** A Problem of status 503 with a time to come back says that nothing was done: so ask may be called again. */
export async function inTurn<T>(
  ask: () => Promise<T>,
  pause: (ms: number) => Promise<void> = sleep,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const seconds = secondsOf(error);
      if (seconds === null || seconds > LONGEST_S || attempt === TRIES_MAX) throw error;
      await pause(seconds * 1000);
    }
  }
}
