/** Which subjects a receiver can remove from its stream and add again (SSF 1.0 section 8.1.3, RFC 9493). */
import { describe, expect, test } from "vitest";
import { addSubject, removeSubject } from "../../../../src/service/signals/streams/subjects.ts";
import { ISSUER, openSignals, operator, receiver } from "../managed-world.ts";

/** Returns a stream, and functions that change its subjects. */
async function ownStream() {
  const { deps, audited, stream } = openSignals();
  const id = await stream("poll");
  return {
    ...{ audited, id },
    remove: (identifier: object, requester = receiver) => removeSubject(deps, id, identifier, requester),
    add: (identifier: object, requester = receiver) => addSubject(deps, id, identifier, requester),
    filter: async () => (await deps.subscriptions.get(id))?.filter,
  };
}
const opaque = (id: unknown) => ({ format: "opaque", id });
const issSub = (iss: unknown, sub: unknown) => ({ format: "iss_sub", iss, sub });

test("what is removed is left out until it is added again, and each change is audited", async () => {
  const { id, add, remove, filter, audited } = await ownStream();
  for (const one of ["alice", "bob", "alice"]) await remove(opaque(one));
  expect(await filter()).toEqual({ exceptSubjects: ["alice", "bob"] });
  await add(opaque("carol"));
  await add(opaque("alice"));
  expect(await filter()).toEqual({ exceptSubjects: ["bob"] });
  await add(opaque("bob"));
  expect(await filter()).toEqual({});
  const event = { event: "subscription_changed", subscription: id, change: "updated" };
  expect(audited).toEqual(Array(6).fill([event, receiver]));
});

test("a hundred subjects can be removed, each as often as one likes", async () => {
  const { remove, filter } = await ownStream();
  for (let at = 0; at < 100; at++) await remove(opaque(`subject ${at}`));
  await remove(opaque("subject 7"));
  await expect(remove(opaque("one more"))).rejects.toMatchObject({
    message: "subject: is one of more than 100 to remove",
  });
  expect((await filter())?.exceptSubjects).toHaveLength(100);
});

test("the stream of another receiver is not found", async () => {
  const { add, remove, audited } = await ownStream();
  for (const change of [add, remove]) {
    await expect(change(opaque("alice"), operator)).rejects.toMatchObject({ code: "E404_NOT_FOUND" });
  }
  expect(audited).toEqual([]);
});

describe("an identifier", () => {
  test.each([
    opaque("alice"),
    opaque("a".repeat(255)),
    { format: "email", email: "alice@example.com" },
    issSub(ISSUER, "alice"),
    { format: "complex", user: issSub(ISSUER, "alice") },
  ])("names a subject: %j", async (identifier) => {
    const { remove, filter } = await ownStream();
    await remove(identifier);
    const { user = identifier } = identifier as { readonly user?: object };
    const { id, email, sub } = user as Readonly<Record<string, unknown>>;
    expect(await filter()).toEqual({ exceptSubjects: [id ?? email ?? sub] });
  });

  test.each([
    issSub("https://another.example", "alice"),
    { format: "phone_number", phone_number: "+12065550123" },
    { format: "complex", session: opaque("session") },
    { format: "complex", user: opaque("alice"), device: opaque("device") },
    { format: "complex", user: null },
    { format: "complex", user: "alice" },
    { format: "complex", user: { format: "complex", user: opaque("alice") } },
  ])("names nobody here: %j", async (identifier) => {
    const { remove, filter } = await ownStream();
    await expect(remove(identifier)).rejects.toMatchObject({
      ...{ code: "E404_NOT_FOUND", message: "the subject is not recognized" },
    });
    expect(await filter()).toEqual({});
  });

  test.each([
    [{ id: "alice" }, "format: is required"],
    [{ format: 1 }, "format: is required"],
    [opaque(undefined), "id: is not a subject"],
    [opaque(7), "id: is not a subject"],
    [opaque(""), "id: is not a subject"],
    [opaque("a".repeat(256)), "id: is not a subject"],
    // As many characters as are allowed, and one byte more.
    [opaque(`${"a".repeat(254)}ä`), "id: is not a subject"],
    [{ format: "email" }, "email: is not a subject"],
    [issSub(7, "alice"), "iss: is not a subject"],
    [issSub(ISSUER, ""), "sub: is not a subject"],
    [{ format: "complex", user: {} }, "format: is required"],
  ])("%j is a bad request", async (identifier, message) => {
    const { remove } = await ownStream();
    await expect(remove(identifier)).rejects.toMatchObject({
      ...{ code: "E400_INVALID_REQUEST", message: `subject.${message}` },
    });
  });
});
