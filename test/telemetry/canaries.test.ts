import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { describe, expect, it, onTestFinished } from "vitest";
import { createBroker } from "../../src/broker/broker.js";
import type { AgentClientOptions } from "../../src/oauth/agent.js";
import { openAudit } from "../../src/profile/audit.js";
import { memoryStore } from "../../src/store/memory.js";
import { instrument } from "../../src/telemetry/otel.js";
import { temporaryFolder } from "../helpers/folder.js";
import { startScene } from "../helpers/issuer.js";

const SIGNAL = new AbortController().signal;
const SECRET = /access-as|refresh-as|code-as|secret-as|canary|alice/;

describe("what is planted in tokens, accounts, codes, queries and paths", () => {
  it("is in no event, span, metric or audit line", async () => {
    const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter: metricExporter });
    const spanExporter = new InMemorySpanExporter();
    const end = instrument({
      meterProvider: new MeterProvider({ readers: [reader] }),
      tracerProvider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] }),
    });
    onTestFinished(end);
    const audit = join(temporaryFolder(), "audit.log");
    const write = openAudit({ value: `file:${audit}`, source: "the test" }, () => {});
    const events: object[] = [];
    const { agent, mcp, issuer, clock } = await startScene({ mcpPath: "/users/alice" });
    const store = memoryStore();
    const onEvent: AgentClientOptions["onEvent"] = (event) => {
      // The address of a request is what a trace is for: it has its path.
      if (!("url" in event)) events.push(event);
      write(event);
    };
    const one = agent({ store, onEvent, loginHint: "alice@example.com" });
    await one.login(mcp.url, { authorizationParams: { access_type: "canary-parameter" } });
    await one.token(mcp.url);
    await clock.sleep(3_600_000, SIGNAL);
    await one.token(mcp.url);
    const broker = createBroker(one, {
      grants: { crm: { server: mcp.url } },
      clients: { job: { listen: "unix:/unused" } },
    });
    await broker.fetch(
      new Request("http://broker/crm/canary-path?canary=query", { method: "POST", body: "canary-body" }),
      "job",
    );
    const { "/pool/token": working } = issuer.routes;
    issuer.routes["/pool/token"] = ({ body }) => ({
      status: 400,
      json: { error: "refresh-as-2", error_description: body },
    });
    await clock.sleep(3_600_000, SIGNAL);
    await one.token(mcp.url).catch(() => undefined);
    issuer.routes["/pool/token"] = {
      status: 400,
      json: { error: "invalid_grant", error_description: "canary-description" },
    };
    await one.token(mcp.url).catch(() => undefined);
    if (working) issuer.routes["/pool/token"] = working;
    issuer.callback = { error: "canary_code", code: null };
    await one.login(mcp.url).catch(() => undefined);
    await one.disconnect(mcp.url);
    await reader.forceFlush();
    const spans = spanExporter
      .getFinishedSpans()
      .map(({ name, attributes, status, events: notes }) => ({ name, attributes, status, notes }));
    const metrics = metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const types = new Set(events.map((event) => ("type" in event ? event.type : "")));
    expect([...types].sort()).toEqual(["lease", "login", "refresh", "revoke", "store", "token"]);
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["agentauth.broker", "agentauth.refresh", "agentauth.login"]),
    );
    expect(metrics.length).toBeGreaterThan(0);
    for (const text of [
      JSON.stringify(events),
      JSON.stringify(spans),
      JSON.stringify(metrics),
      readFileSync(audit, "utf8"),
    ]) {
      expect(text).toContain("invalid_grant");
      expect(text.match(SECRET)).toBeNull();
    }
  });
});
