/**
 * Says which runtime a package needs, instead of the name of a function that an older one lacks. npm only warns of `engines`.
 * @throws Error before Node 22
 */
export function checkRuntime(packageName: string): void {
  if (typeof Promise.withResolvers === "function") return;
  const name = typeof process === "undefined" ? "an older runtime" : `Node ${process.versions.node}`;
  throw new Error(`${packageName} needs Node 22.13 or newer; this is ${name}`);
}
