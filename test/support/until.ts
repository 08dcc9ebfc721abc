/** Resolves with the first attempt that succeeds. Retries until the test times out. */
export async function until<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
