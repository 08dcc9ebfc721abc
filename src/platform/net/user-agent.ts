/** Names what a User-Agent header stands for, for people: nothing is decided by it. */

const BROWSERS = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["SamsungBrowser", "Samsung Internet"],
  ["Firefox", "Firefox"],
  ["FxiOS", "Firefox"],
  ["CriOS", "Chrome"],
  ["Chrome", "Chrome"],
  ["Safari", "Safari"],
  ["curl", "curl"],
] as const;
const SYSTEMS = [
  ["iPhone", "iPhone"],
  ["iPad", "iPad"],
  ["Android", "Android"],
  ["Windows", "Windows"],
  ["Mac OS X", "macOS"],
  ["CrOS", "ChromeOS"],
  ["Linux", "Linux"],
] as const;

/** Returns the browser and its system, such as `Chrome on Windows`; undefined for a client that is not known. */
export function browserOf(userAgent: string): string | undefined {
  const browser = BROWSERS.find(([mark]) => userAgent.includes(`${mark}/`))?.[1];
  return browser && onSystem(browser, userAgent);
}

/** Returns the name of the first product (RFC 9110 section 10.1.5) and its system, such as `Example-App on iPhone`, without any version. */
export function productOf(userAgent: string): string {
  return onSystem(/^[\w.-]{1,32}/.exec(userAgent)?.[0] ?? "", userAgent);
}

function onSystem(name: string, userAgent: string): string {
  const system = name === "" ? undefined : SYSTEMS.find(([mark]) => userAgent.includes(mark))?.[1];
  return system === undefined ? name : `${name} on ${system}`;
}
