/** How many operations, each with a command to the store, run at the same time. */
const MAX_COMMANDS = 16;

/** Calls an operation for each value, some at the same time. Rejects with the first failure after all have ended. */
export async function eachOf<T>(values: readonly T[], operation: (value: T) => Promise<void>): Promise<void> {
  const left = values.values();
  const work = async () => {
    for (const value of left) await operation(value);
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(MAX_COMMANDS, values.length) }, work));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
