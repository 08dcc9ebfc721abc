/** Resolves with the first answer that is not an error; tries again and again, and gives up with the test. */
export async function until<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
