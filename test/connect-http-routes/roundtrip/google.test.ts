/**
 * The round trip of random messages over a sample of the services that Google publishes. `npm run roundtrip` takes all of these services.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { loadGoogleProtos } from "./google-protos.ts";
import { type RoundTripReport, roundTrip } from "./round-trip.ts";

/** Small packages that together have every kind of binding: verbs, `**`, mixins, raw bodies, 64-bit path variables. */
const DIRECTORIES = [
  "google/appengine",
  "google/cloud/language",
  "google/cloud/talent",
  "google/container",
  "google/datastore",
  "google/firestore",
  "google/iam",
  "google/longrunning",
  "google/pubsub",
  "google/storagetransfer",
];

describe("random messages over the routes of Google's services", () => {
  let report: RoundTripReport;
  beforeAll(async () => {
    report = await roundTrip(loadGoogleProtos(DIRECTORIES), 1);
  });

  test("cover hundreds of routes in every form", () => {
    expect(report.routes).toBeGreaterThan(300);
    for (const [form, trips] of Object.entries(report.trips)) expect(trips, form).toBeGreaterThan(300);
  });

  test("arrive as they were sent, and so do the responses", () => {
    expect(report.wrong).toEqual([]);
  });
});
