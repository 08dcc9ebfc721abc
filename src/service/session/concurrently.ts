/** How many operations run at the same time, so that one caller does not occupy the store. */
const MAX_OPERATIONS = 16;

/**
 * Runs an operation for each value, several at the same time. After all that have begun have ended, rejects with the first failure. After
 * `MAX_OPERATIONS` failures no further operation begins.
 */
export async function forEachConcurrently<T>(
  values: readonly T[],
  operation: (value: T) => Promise<void>,
): Promise<void> {
  const left = values.values();
  const work = async () => {
    for (const value of left) await operation(value);
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(MAX_OPERATIONS, values.length) }, work));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
