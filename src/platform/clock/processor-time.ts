/** Returns the processor time of all threads of this process, ms. The result is slightly too high while threads beside the event loop work. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
