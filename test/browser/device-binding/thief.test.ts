/** A thief that copies all cookies of a profile can use them only until the copied device cookie expires. The owner's session continues. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { type Bed, bound, DEVICE_COOKIE, LIFE_MS, passLife, passTime, refreshIn, startBed, type User } from "./bed.ts";
import type { Profile, ProfileTab } from "./profiles.ts";

/** How often the theft is repeated. The long form (`npm run test:browser`) repeats it more often. */
const RUNS = process.env.BROWSERS === "long" ? 20 : 3;

let bed: Bed;
let profile: Profile;
let thief: Profile;
beforeAll(async () => {
  bed = await startBed();
  [profile, thief] = await Promise.all([bed.profile(), bed.profile()]);
});
afterAll(() => bed?.stop());

/**
 * Copies every cookie of the user's site to the thief's profile. The copies get a later time of expiry, so that the thief still has them
 * when the originals have expired.
 */
async function copyCookies({ host }: User): Promise<void> {
  const cookies = await until(async () => {
    const found = (await profile.cookies()).filter(({ domain }) => domain === host);
    expect(found.map(({ name }) => name)).toContain(DEVICE_COOKIE);
    return found;
  });
  const expires = Date.now() / 1000 + 86_400;
  await thief.setCookies(cookies.map((cookie) => ({ ...cookie, expires })));
}

/** Checks that a refresh by the user's page is served and that its token is bound to the device. */
async function expectServed(tab: ProfileTab): Promise<void> {
  expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
}

test.each(Array.from({ length: RUNS }, (_, run) => ({ run: run + 1 })))(
  "run $run: a copied profile is not served after one life, and the profile is",
  async ({ run }) => {
    const user = bed.user(profile);
    const tab = await bound(user, bed);
    // The cookies are copied at varying times of the device cookie's life.
    const ageMs = Math.floor((LIFE_MS * 0.9 * ((run * 7) % RUNS)) / RUNS);
    await passTime(bed, ageMs);
    await copyCookies(user);
    const stolen = await thief.open(`${user.url}/other`);
    // In every other run the thief uses the copy before it expires. The copy is accepted, and so is a later refresh of the user.
    if (run % 2 === 0) {
      expect(await refreshIn(stolen)).toMatchObject({ status: 200 });
      await expectServed(tab);
    }
    for (let life = 0; life < 2; life++) {
      await passLife(user, bed, life === 0 ? LIFE_MS - ageMs : LIFE_MS);
      const attempts = await Promise.all([refreshIn(stolen), refreshIn(stolen)]);
      expect(attempts.map(({ status }) => status)).not.toContain(200);
      await expectServed(tab);
      expect((await refreshIn(stolen)).status).not.toBe(200);
    }
    expect(bed.audit(user).filter((event) => event === "device_proof_missing")).toHaveLength(6);
    expect(bed.audit(user)).not.toContain("session_ended");
    await stolen.close();
    await tab.close();
  },
);
