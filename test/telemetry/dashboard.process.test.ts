import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MeterProvider, type MetricReader } from "@opentelemetry/sdk-metrics";
import { describe, expect, it, onTestFinished } from "vitest";
import { createBroker } from "../../src/broker/broker.js";
import { AgentAuthError } from "../../src/errors.js";
import type { GrantStore } from "../../src/oauth/model/grant-store.js";
import { memoryStore } from "../../src/store/memory.js";
import { instrument } from "../../src/telemetry/otel.js";
import { temporaryFolder } from "../helpers/folder.js";
import { type Scene, startScene } from "../helpers/issuer.js";
import { labPackage, sayWithoutLab } from "../helpers/lab.js";
import { freePort } from "../helpers/port.js";

const SIGNAL = new AbortController().signal;
const HAS_PROMETHEUS = spawnSync("prometheus", ["--version"]).status === 0;

interface Exporter {
  PrometheusExporter: new (options: { host: string; port: number }) => MetricReader;
}
const exporters = await labPackage<Exporter>("@opentelemetry/exporter-prometheus");
sayWithoutLab("the queries of the dashboard");

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

const { panels } = JSON.parse(readFileSync("examples/grafana/agentauth.json", "utf8")) as Dashboard;
const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const));
/** The query of docs/events.md. */
const documented = /```promql\n(.+?)\n```/s.exec(readFileSync("docs/events.md", "utf8"))?.[1] ?? "";

/** A Prometheus that scrapes a port each half second. */
async function startPrometheus(scraped: number): Promise<string> {
  const folder = temporaryFolder();
  const config = {
    scrape_configs: [
      {
        job_name: "agentauth",
        scrape_interval: "500ms",
        scrape_timeout: "500ms",
        static_configs: [{ targets: [`127.0.0.1:${scraped}`] }],
      },
    ],
  };
  // JSON is YAML.
  writeFileSync(join(folder, "prometheus.yml"), JSON.stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const args = [
    `--config.file=${join(folder, "prometheus.yml")}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=${address}`,
  ];
  const child: ChildProcess = spawn("prometheus", args, { stdio: "ignore" });
  onTestFinished(async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
  return `http://${address}`;
}

async function seriesOf(prometheus: string, query: string): Promise<{ metric: Record<string, string> }[]> {
  const filled = query.replaceAll("$__rate_interval", "1m").replaceAll("$__range", "1h");
  const response = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(filled)}`);
  const { status, error, data } = (await response.json()) as {
    status: string;
    error?: string;
    data: { result: { metric: Record<string, string> }[] };
  };
  if (status !== "success") throw new Error(`${query}: ${error}`);
  return data.result;
}

/** Everything that the dashboard shows, once. */
async function useEverything({ agent, mcp, issuer, clock }: Scene): Promise<void> {
  const store = memoryStore();
  const expire = () => clock.sleep(3_600_000, SIGNAL);
  const silent = () => agent({ store, login: undefined });
  await agent({ store }).login(mcp.url);
  await expire();
  await Promise.all([silent().token(mcp.url), silent().token(mcp.url)]);
  const broker = createBroker(silent(), {
    grants: { crm: { server: mcp.url } },
    clients: { job: { listen: "unix:/unused" } },
  });
  await broker.fetch(new Request("http://broker/crm"), "job");
  await broker.fetch(new Request("http://broker/none"), "job");
  const before = { at: 1, endedAt: undefined, ended: "died", committed: false, failure: undefined } as const;
  const taken: GrantStore = {
    ...store,
    lease: (name, work, options) => store.lease(name, (lease) => work({ ...lease, previous: before }), options),
  };
  await expire();
  await agent({ store: taken, login: undefined }).token(mcp.url);
  const failing = { ...store, read: () => Promise.reject(new AgentAuthError("store_failed", "x", { class: "store" })) };
  await agent({ store: failing, login: undefined })
    .token(mcp.url)
    .catch(() => undefined);
  const { "/pool/token": working } = issuer.routes;
  issuer.routes["/pool/token"] = { status: 400, json: { error: "invalid_grant" } };
  await expire();
  await silent()
    .token(mcp.url)
    .catch(() => undefined);
  await silent().disconnect(mcp.url);
  if (working !== undefined) issuer.routes["/pool/token"] = working;
}

describe.runIf(HAS_PROMETHEUS && exporters)(
  "the dashboard, and the query that the page shows (needs prometheus)",
  () => {
    it("find what a real Prometheus has scraped", async () => {
      if (exporters === undefined) throw new Error("no exporter is installed");
      const port = await freePort();
      const exporter = new exporters.PrometheusExporter({ host: "127.0.0.1", port });
      const meterProvider = new MeterProvider({ readers: [exporter] });
      const end = instrument({ meterProvider });
      onTestFinished(async () => {
        end();
        await meterProvider.shutdown();
      });
      const prometheus = await startPrometheus(port);
      const scene = await startScene();
      // An increase is seen between two scrapes that both have the series.
      await useEverything(scene);
      await expect.poll(() => seriesOf(prometheus, "agentauth_revoke_duration_count").catch(() => [])).toHaveLength(1);
      await useEverything(scene);
      await expect.poll(() => seriesOf(prometheus, documented)).not.toEqual([]);
      await expect
        .poll(async () => {
          const found = await Promise.all(
            queries.map(async ([title, query]) => [title, (await seriesOf(prometheus, query)).length] as const),
          );
          return found.filter(([, length]) => length === 0);
        })
        .toEqual([]);
      const failed = await seriesOf(prometheus, documented);
      const { issuer } = scene.issuer;
      expect(failed.map(({ metric }) => metric)).toContainEqual({
        agentauth_issuer: issuer,
        agentauth_reason: "issuer",
        error_type: "invalid_grant",
      });
    });
  },
);
