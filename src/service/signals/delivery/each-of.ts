/** How many operations run at the same time. Each sends a command to the store. */
const MAX_COMMANDS = 16;

/** Runs an operation for each value, several at the same time. After all have ended, rejects with the first failure. */
export async function eachOf<T>(values: readonly T[], operation: (value: T) => Promise<void>): Promise<void> {
  const left = values.values();
  const work = async () => {
    for (const value of left) await operation(value);
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(MAX_COMMANDS, values.length) }, work));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
