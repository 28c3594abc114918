import { connect } from "node:net";
import { expect, it } from "vitest";
import { openLoopback } from "../../src/login/listen.js";
import { fc } from "../helpers/properties.js";
import { RUNS, SETTINGS, textLike } from "./inputs.js";

const STATE = "the-state-of-this-sign-in-which-nobody-guesses";
const MARK = "reflected-7f3a";

/** Sends bytes over a connection of their own and gives what comes back before it ends. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.once("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
    socket.end(text);
  });
}

it("nothing that is sent to the callback's port is taken, repeated or harms the login, which then continues", async () => {
  const controller = new AbortController();
  const loopback = await openLoopback({ signal: controller.signal });
  const { port, pathname } = new URL(loopback.redirectUri);
  const received = loopback.receive(STATE, controller.signal);
  const host = `127.0.0.1:${port}`;
  const valid = [
    `GET ${pathname}?code=${MARK}&state=another HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET ${pathname}?error=${MARK}&error_description=${MARK}&state=x HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Dest: document\r\n\r\n`,
    `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `GET http://evil.example/${MARK} HTTP/1.1\r\nHost: evil.example\r\nOrigin: https://evil.example\r\n\r\n`,
  ];
  await fc.assert(
    fc.asyncProperty(textLike(...valid), async (request) => {
      const answer = await exchange(Number(port), request);
      if (answer !== "") expect(answer).toMatch(/^HTTP\/1\.1 (?:4\d\d|100) /);
      expect(answer).not.toContain(MARK);
      expect(answer.toLowerCase()).not.toContain("\nlocation:");
    }),
    // Connections take their time.
    { ...SETTINGS, numRuns: Math.min(RUNS, 20_000) },
  );
  const page = fetch(`${loopback.redirectUri}?code=the-code&state=${STATE}`);
  expect((await received).get("code")).toBe("the-code");
  await loopback.close({ ok: true });
  expect((await page).status).toBe(200);
});
