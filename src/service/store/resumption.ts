/**
 * Returns a function that continues logouts of many sessions that made no progress since its last call: the process that began them may have
 * died. It takes the logouts that are under way, as texts that change with their progress.
 */
export function createResumption(
  finish: (underWay: string) => Promise<unknown>,
): (underWay: readonly string[]) => void {
  let before: ReadonlySet<string> = new Set();
  return (underWay) => {
    const stalled = underWay.filter((each) => before.has(each));
    before = new Set(underWay);
    // If this fails, the next call finds the logout again.
    for (const each of stalled) finish(each).catch(() => {});
  };
}
