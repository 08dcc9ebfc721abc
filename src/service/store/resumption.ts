/**
 * Returns a function that continues bulk logouts that made no progress since its last call: the process that began them may
 * have died. The function takes the progress of each logout under way, by the name that `finish` takes.
 */
export function createResumption(
  finish: (name: string) => Promise<unknown>,
): (underWay: ReadonlyMap<string, string>) => void {
  let before: ReadonlyMap<string, string> = new Map();
  return (underWay) => {
    const stalled = [...underWay].filter(([name, progress]) => before.get(name) === progress);
    before = underWay;
    // If this fails, the next call finds the logout again.
    for (const [name] of stalled) finish(name).catch(() => {});
  };
}
