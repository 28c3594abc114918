import { describe, expect } from "vitest";
import { runProcess } from "../helpers/cli.js";
import { expireIdToken, loginAtIdp, machineTest, tokenRequests } from "./machine-support.js";

const it = machineTest();

describe("one login at the company's identity provider", () => {
  it("is renewed once for ten processes at two servers, each time", async ({ harness, machine, me }) => {
    await me.run(loginAtIdp(machine));
    const client = ["--client-id", machine.workloadClient.clientId, "--issuer", machine.issuer];
    const servers = [harness.url, `${harness.url}/${harness.sandbox.ids.pool}`];
    for (const url of servers) await me.run(["token", url, ...client]);
    for (let time = 1; time <= 3; time++) {
      await me.age(-10);
      await expireIdToken(me, machine);
      const before = tokenRequests(me).length;
      const runs = await Promise.all(
        Array.from({ length: 10 }, (_, nth) => {
          const words = ["token", servers[nth % 2] ?? "", "--no-login"];
          return runProcess(words, { env: { AGENTAUTH_HOME: me.home } });
        }),
      );
      expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual(Array(10).fill([0, ""]));
      expect(new Set(runs.map(({ stdout }) => stdout)).size).toBe(2);
      const sent = tokenRequests(me).slice(before);
      expect(sent.filter((line) => line.startsWith("POST /idp/token refresh_token"))).toHaveLength(1);
      expect(sent.map((line) => line.slice(-4))).toEqual(Array(5).fill(" 200"));
    }
  });
});
