import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import {
  bothReceivers,
  createEvents,
  observe,
  readKnownCode,
  readOrigin,
  readReason,
} from "../../src/telemetry/emit.js";
import {
  type AgentEvent,
  CHANNEL_PREFIX,
  EVENTS,
  type EventField,
  type EventName,
} from "../../src/telemetry/events.js";

function subscribed(type: EventName): AgentEvent[] {
  const events: AgentEvent[] = [];
  const receive = (message: unknown) => events.push(message as AgentEvent);
  subscribe(`${CHANNEL_PREFIX}${type}`, receive);
  onTestFinished(() => void unsubscribe(`${CHANNEL_PREFIX}${type}`, receive));
  return events;
}

const READ = { type: "store", operation: "read", outcome: "ok", durationMs: 1 } as const;

describe("events", () => {
  it("are not even built where nothing receives them", () => {
    const events = createEvents();
    events.emit("store", () => {
      throw new Error("built");
    });
    expect(events.wants("store")).toBe(false);
  });

  it.each(["subscriber", "receiver"])("reach a %s whole", (which) => {
    const received: AgentEvent[] = which === "subscriber" ? subscribed("store") : [];
    const events = createEvents(which === "receiver" ? (event) => received.push(event) : undefined);
    events.emit("store", () => READ);
    expect(received).toEqual([READ]);
  });

  it("reach the subscribers alone where a receiver throws", () => {
    const received = subscribed("store");
    const events = createEvents(() => {
      throw new Error("a bug of the program");
    });
    events.emit("store", () => READ);
    expect(received).toHaveLength(1);
  });

  it("find a subscriber that came later, and miss one that left", () => {
    const events = createEvents();
    const name = `${CHANNEL_PREFIX}revoke`;
    const receive = () => {};
    subscribe(name, receive);
    expect(events.wants("revoke")).toBe(true);
    unsubscribe(name, receive);
    expect(events.wants("revoke")).toBe(false);
  });

  it("say how long work took, and leave its result and its error as they are", async () => {
    const received = subscribed("store");
    const error = new Error("x");
    const fields = { operation: "save", outcome: "ok" } as const;
    expect(
      await observe(
        createEvents(),
        "store",
        async () => 7,
        () => fields,
      ),
    ).toBe(7);
    await expect(
      observe(
        createEvents(),
        "store",
        () => Promise.reject(error),
        () => undefined,
      ),
    ).rejects.toBe(error);
    expect(received).toEqual([{ type: "store", ...fields, durationMs: expect.any(Number) }]);
  });
});

describe("the fields of an event", () => {
  it.each([
    ["invalid_grant", "invalid_grant"],
    ["timeout", "timeout"],
    ["a-code-of-a-hostile-issuer", "other"],
  ])("name the code %s as %s", (code, shown) => {
    expect(readKnownCode(new AgentAuthError(code, "m", { class: "auth" }))).toBe(shown);
  });

  it.each([
    ["lease_lost", "unavailable", "lease"],
    ["store_unavailable", "unavailable", "store"],
    ["timeout", "unavailable", "unavailable"],
    ["invalid_grant", "auth", "issuer"],
    ["bad_token_answer", "refused", "refused"],
    ["usage", "usage", "configuration"],
    ["not_found", "remote", "issuer"],
    ["incomplete", "partial", "issuer"],
    ["store_failed", "store", "store"],
    ["cancelled", "aborted", "aborted"],
    ["internal_error", "internal", "internal"],
  ] as const)("name the reason of %s (%s) as %s", (code, kind, reason) => {
    expect(readReason(new AgentAuthError(code, "m", { class: kind }))).toBe(reason);
  });

  it("say that any other error is a bug", () => {
    expect([readKnownCode(new Error("x")), readReason(new Error("x"))]).toEqual(["internal_error", "internal"]);
  });

  it.each([
    ["https://mcp.example/users/alice?x=1", "https://mcp.example"],
    ["https://mcp.example:8443", "https://mcp.example:8443"],
    ["http://[::1]:4000/mcp", "http://[::1]:4000"],
  ])("have the origin of %s alone", (address, origin) => {
    expect(readOrigin(address)).toBe(origin);
  });

  it.each(Object.entries(EVENTS))(
    "are in docs/events.md with the meaning of each field and value: %s",
    (type, event) => {
      const sections = readFileSync("docs/events.md", "utf8").split("\n### ");
      const section = sections.find((text) => text.startsWith(`\`${type}\``)) ?? "";
      expect(section.split("\n")[2]?.slice(1)).toBe(`${event.description.slice(1)}.`);
      for (const [name, field] of Object.entries<EventField>(event.fields)) {
        const row = section.split("\n").find((line) => line.startsWith(`| \`${name}\` |`)) ?? "";
        const shared = section.split("\n").find((line) => line.startsWith("As of ") && line.includes(`\`${name}\``));
        const first = row === "" ? /^As of `(\w+)`/.exec(shared ?? "")?.[1] : undefined;
        if (first !== undefined) {
          expect(field).toEqual((EVENTS[first as EventName].fields as Record<string, EventField>)[name]);
          continue;
        }
        const values = Object.entries(field.values ?? {}).map(([value, meaning]) => `\`${value}\`: ${meaning}`);
        const what = `${field.description}${field.optional ? " (optional)" : ""}`;
        expect(row).toBe(`| \`${name}\` | ${[what, ...(values.length > 0 ? [values.join("; ")] : [])].join(". ")} |`);
      }
    },
  );

  it("are labels of few values, numbers, or text that is listed here", () => {
    const texts = Object.values(EVENTS).flatMap(({ fields }) =>
      Object.entries(fields).flatMap(([name, field]) => ("values" in field || "unit" in field ? [] : [name])),
    );
    expect([...new Set(texts)].sort()).toEqual(["client", "code", "issuer", "method", "name", "server", "tool"]);
  });
});

describe("two receivers of events", () => {
  it("are one, which is the other where there is one alone", () => {
    const received: string[] = [];
    const one = (event: string) => void received.push(`one ${event}`);
    const other = (event: string) => void received.push(`other ${event}`);
    expect(bothReceivers()).toBeUndefined();
    expect(bothReceivers(undefined, undefined)).toBeUndefined();
    expect(bothReceivers(one, undefined)).toBe(one);
    expect(bothReceivers(undefined, other)).toBe(other);
    bothReceivers(one, other)?.("a");
    expect(received).toEqual(["one a", "other a"]);
  });

  it("get the event both, whatever the first does", () => {
    const received: string[] = [];
    const failing = () => {
      throw new Error("a bug of the program");
    };
    const both = bothReceivers<string>(failing, (event) => received.push(event));
    expect(() => both?.("a")).toThrow("a bug of the program");
    expect(received).toEqual(["a"]);
  });
});
