import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createEvents } from "../../src/telemetry/emit.js";
import type { AgentEvent, EventFields, EventName } from "../../src/telemetry/events.js";
import { instrument } from "../../src/telemetry/otel.js";

/** Emits one event, and reads the metrics and the spans that come from it. */
async function record<N extends EventName>(type: N, fields: EventFields<N>) {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter });
  const spans = new InMemorySpanExporter();
  const end = instrument({
    meterProvider: new MeterProvider({ readers: [reader] }),
    tracerProvider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  });
  onTestFinished(() => reader.shutdown());
  const events = createEvents();
  const build = () => ({ type, ...fields }) as unknown as AgentEvent<N>;
  events.emit(type, build);
  end();
  events.emit(type, build);
  await reader.forceFlush();
  const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  return {
    metrics: metrics.flatMap(({ descriptor: { name, unit }, dataPoints }) =>
      dataPoints.map(({ value, attributes }) => ({
        name,
        unit,
        value: typeof value === "number" ? value : [value.count, value.sum],
        attributes,
      })),
    ),
    spans: spans.getFinishedSpans().map(({ name, kind, status, duration: [seconds, nanoseconds], attributes }) => ({
      name,
      kind,
      isError: status.code === SpanStatusCode.ERROR,
      ms: seconds * 1000 + nanoseconds / 1e6,
      attributes,
    })),
  };
}

const SERVER = { "server.address": "mcp.example", "server.port": 443 };

describe("an event", () => {
  it("that has a number of logins sets a gauge", async () => {
    const issuer = "https://as.example";
    expect(await record("overdue", { issuer, logins: 7 })).toEqual({
      metrics: [
        { name: "agentauth.overdue.logins", unit: "{login}", value: 7, attributes: { "agentauth.issuer": issuer } },
      ],
      spans: [],
    });
  });

  it("that takes no time is counted, with what has few values", async () => {
    const fields = { source: "stored", issuer: "https://as.example", server: "https://mcp.example" } as const;
    const attributes = { "agentauth.source": "stored", "agentauth.issuer": "https://as.example" };
    expect(await record("token", fields)).toEqual({
      metrics: [{ name: "agentauth.token.requests", unit: "{request}", value: 1, attributes }],
      spans: [],
    });
  });

  it("that takes time is a histogram of seconds, and a span with its server", async () => {
    const fields = { outcome: "revoked", issuer: "https://as.example", server: "https://mcp.example" } as const;
    const attributes = { "agentauth.outcome": "revoked", "agentauth.issuer": "https://as.example" };
    expect(await record("revoke", { ...fields, durationMs: 1500 })).toEqual({
      metrics: [{ name: "agentauth.revoke.duration", unit: "s", value: [1, 1.5], attributes }],
      spans: [
        {
          name: "agentauth.revoke",
          kind: SpanKind.CLIENT,
          isError: false,
          ms: 1500,
          attributes: { ...attributes, ...SERVER },
        },
      ],
    });
  });

  it("that failed has the code as the type of its error", async () => {
    const details = { outcome: "failed", code: "timeout", issuer: undefined } as const;
    const fields = { ...details, trigger: "expired", grant: "refresh_token", server: "http://[::1]:4000" } as const;
    const { metrics, spans } = await record("refresh", { ...fields, durationMs: 1 });
    const attributes = {
      "agentauth.outcome": "failed",
      "agentauth.trigger": "expired",
      "agentauth.grant": "refresh_token",
      "error.type": "timeout",
    };
    expect(metrics).toMatchObject([{ attributes }]);
    const server = { "server.address": "[::1]", "server.port": 4000 };
    expect(spans).toMatchObject([{ kind: SpanKind.CLIENT, isError: true, attributes: { ...attributes, ...server } }]);
  });

  it.each([
    ["GET", "GET"],
    ["PROPFIND", "_OTHER"],
  ])("of a broker has the method %s as %s, and its tool in the span alone", async (method, shown) => {
    const details = { client: "job", name: "crm", method, status: 403, refused: "tool" } as const;
    const { metrics, spans } = await record("broker", { ...details, tool: "drop", durationMs: 1 });
    const attributes = {
      "agentauth.client": "job",
      "agentauth.name": "crm",
      "agentauth.refused": "tool",
      "error.type": "tool",
      "http.request.method": shown,
      "http.response.status_code": 403,
    };
    expect(metrics.map((metric) => metric.attributes)).toEqual([attributes]);
    expect(spans).toMatchObject([{ kind: SpanKind.SERVER, attributes: { ...attributes, "agentauth.tool": "drop" } }]);
    const without = await record("broker", { ...details, tool: undefined, durationMs: 1 });
    expect(without.spans.map((span) => span.attributes)).toEqual([attributes]);
  });

  it("of the store is an internal span", async () => {
    const { spans } = await record("store", { operation: "read", outcome: "ok", durationMs: 0 });
    const attributes = { "agentauth.operation": "read", "agentauth.outcome": "ok" };
    expect(spans).toMatchObject([{ kind: SpanKind.INTERNAL, isError: false, attributes }]);
  });
});

describe("instrument", () => {
  it.each([[undefined], [{}]])("is refused in a runtime without channels, where process is %j", (process) => {
    vi.stubGlobal("process", process);
    let thrown: unknown;
    try {
      instrument();
    } catch (error) {
      thrown = error;
    } finally {
      vi.unstubAllGlobals();
    }
    expect(thrown).toMatchObject({
      code: "usage",
      message: "this runtime has no node:diagnostics_channel, which has the events",
    });
  });
});
