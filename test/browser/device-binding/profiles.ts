/** Profiles of Chromium with or without device bound sessions, and the events that the browser reports about these sessions. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContext, type CDPSession, type Cookie, chromium } from "playwright-core";
import { scratch } from "../../support/service.ts";
import { CHROMIUM_FLAGS, type Tab, trustStore } from "../engines/driver.ts";

/** The feature flags of Chromium. Its software keys replace those of a TPM, which test machines lack. */
const FEATURES = "DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting";

/** What Chromium reports of a device bound session (CDP, Network.deviceBoundSessionEventOccurred). */
type DeviceEvent = {
  readonly succeeded: boolean;
  readonly sessionId?: string;
  readonly creationEventDetails?: { readonly fetchResult: string };
  readonly refreshEventDetails?: { readonly refreshResult: string; readonly newSession?: unknown };
  readonly challengeEventDetails?: { readonly challengeResult: string; readonly challenge: string };
  readonly terminationEventDetails?: { readonly deletionReason: string };
};

export type ProfileTab = Tab & { readonly devtools: CDPSession };

export type Profile = {
  /** The events since the profile was created, including those before restarts. */
  readonly events: readonly DeviceEvent[];
  open(url: string): Promise<ProfileTab>;
  cookies(): Promise<Cookie[]>;
  setCookies(cookies: readonly Cookie[]): Promise<void>;
  deleteCookie(name: string, domain: string): Promise<void>;
  /** Quits the browser and starts it again, without tabs. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

type Options = {
  /** The certificate authority to trust, in PEM. */
  readonly authority: string;
  /** Whether the browser binds sessions by itself. */
  readonly binds: boolean;
};

export async function startProfile({ authority, binds }: Options): Promise<Profile> {
  const home = scratch();
  trustStore(join(home, ".pki/nssdb"), authority);
  const directory = join(home, "profile");
  mkdirSync(directory);
  const features = binds ? `--enable-features=${FEATURES}` : "--disable-features=DeviceBoundSessions";
  const launch = () =>
    chromium.launchPersistentContext(directory, {
      executablePath: "/usr/bin/chromium",
      args: [...CHROMIUM_FLAGS, "--host-resolver-rules=MAP *.test 127.0.0.1", features],
      env: { PATH: process.env.PATH ?? "", HOME: home },
    });
  const events: DeviceEvent[] = [];
  let context: BrowserContext = await launch();

  return {
    events,
    async open(url) {
      const page = await context.newPage();
      const devtools = await context.newCDPSession(page);
      await devtools.send("Network.enable");
      if (binds) {
        // Playwright's types do not have this command of the DevTools protocol yet.
        const untyped = devtools as unknown as {
          send(method: string, params: object): Promise<unknown>;
          on(event: string, listener: (event: DeviceEvent) => void): void;
        };
        untyped.on("Network.deviceBoundSessionEventOccurred", (event) => events.push(event));
        await untyped.send("Network.enableDeviceBoundSessions", { enable: true });
      }
      await page.goto(url);
      return {
        devtools,
        goto: async (next) => void (await page.goto(next)),
        back: async () => void (await page.goBack()),
        evaluate: (expression) => page.evaluate(expression),
        close: () => page.close(),
      };
    },
    cookies: () => context.cookies(),
    setCookies: (cookies) => context.addCookies([...cookies]),
    deleteCookie: (name, domain) => context.clearCookies({ name, domain }),
    async restart() {
      await context.close();
      context = await launch();
    },
    close: () => context.close(),
  };
}
