import type { Attributes, MeterProvider, TracerProvider } from "@opentelemetry/api";
import { metrics, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { usageError } from "../errors.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import { diagnosticsChannel } from "./emit.js";
import { type AgentEvent, CHANNEL_PREFIX, EVENTS, type EventField, type EventName } from "./events.js";

/** Where {@link instrument} sends metrics and spans. */
export interface InstrumentOptions {
  /** Default: the global one. */
  meterProvider?: MeterProvider | undefined;
  /** Default: the global one. */
  tracerProvider?: TracerProvider | undefined;
}

const OPTIONS: OptionNames<InstrumentOptions> = { meterProvider: true, tracerProvider: true };

/**
 * Makes metrics and spans of the events of every agent client and broker in this process. Call it once, at the start.
 *
 * `token` is the counter `agentauth.token.requests`, and `overdue` the gauge `agentauth.overdue.logins`; every other type is a histogram of seconds, such as
 * `agentauth.refresh.duration`, and a span of the active context, such as `agentauth.refresh`. Attributes are
 * `agentauth.<field>`, and those of the stable conventions: `error.type` has the code, and a span `server.address`.
 *
 * @returns a function that ends it
 * @throws `AgentAuthError` `usage` in a runtime without `node:diagnostics_channel`
 *
 * @example
 * instrument({ meterProvider, tracerProvider });
 */
export function instrument(options: InstrumentOptions = {}): () => void {
  checkOptionNames(options, OPTIONS, "instrument");
  const channels = diagnosticsChannel();
  if (channels === undefined) throw usageError("this runtime has no node:diagnostics_channel, which has the events");
  const { meterProvider = metrics.getMeterProvider(), tracerProvider = trace.getTracerProvider() } = options;
  const meter = meterProvider.getMeter("agentauth");
  const tracer = tracerProvider.getTracer("agentauth");
  const ends = (Object.keys(EVENTS) as EventName[]).map((type) => {
    const description = EVENTS[type].description;
    const isTimed = "durationMs" in EVENTS[type].fields;
    const name = `agentauth.${type}.${isTimed ? "duration" : "requests"}`;
    const gauge =
      type === "overdue" ? meter.createGauge("agentauth.overdue.logins", { description, unit: "{login}" }) : undefined;
    const counter = isTimed || gauge ? undefined : meter.createCounter(name, { description, unit: "{request}" });
    const advice = { explicitBucketBoundaries: BOUNDARIES };
    const histogram = isTimed ? meter.createHistogram(name, { description, unit: "s", advice }) : undefined;
    const receive = (message: unknown) => {
      const event = message as AgentEvent;
      const labels = buildLabels(event);
      counter?.add(1, labels);
      if (event.type === "overdue") gauge?.record(event.logins, labels);
      if (!("durationMs" in event)) return;
      histogram?.record(event.durationMs / 1000, labels);
      const endTime = Date.now();
      const kind = KINDS[type] ?? SpanKind.INTERNAL;
      const attributes = { ...labels, ...buildDetails(event) };
      const span = tracer.startSpan(`agentauth.${type}`, { kind, startTime: endTime - event.durationMs, attributes });
      if (labels["error.type"] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(endTime);
    };
    channels.subscribe(`${CHANNEL_PREFIX}${type}`, receive);
    return () => channels.unsubscribe(`${CHANNEL_PREFIX}${type}`, receive);
  });
  return () => {
    for (const end of ends) end();
  };
}

/** Seconds: from a store in memory to a user who looks for a password. */
const BOUNDARIES = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

const KINDS: Partial<Record<EventName, SpanKind>> = {
  refresh: SpanKind.CLIENT,
  revoke: SpanKind.CLIENT,
  broker: SpanKind.SERVER,
};

/** Any other one is `_OTHER`, as the conventions of HTTP have it. */
const METHODS = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]);

/** Fields that are text, and have few values in one installation. */
const NAMED = ["issuer", "client", "name"];

/** The attributes of metrics: only what has few values. */
function buildLabels(event: AgentEvent): Attributes {
  const labels: Attributes = {};
  const fields: Readonly<Record<string, EventField>> = EVENTS[event.type].fields;
  for (const [name, value] of Object.entries(event)) {
    const isLabel = fields[name]?.values !== undefined || NAMED.includes(name);
    if (isLabel && value !== undefined) labels[`agentauth.${name}`] = value;
  }
  const error = "code" in event ? event.code : "refused" in event ? event.refused : undefined;
  if (error !== undefined) labels["error.type"] = error;
  if (event.type === "broker") {
    labels["http.request.method"] = METHODS.has(event.method) ? event.method : "_OTHER";
    labels["http.response.status_code"] = event.status;
  }
  return labels;
}

/** What spans have beside that. */
function buildDetails(event: AgentEvent): Attributes {
  const tool = "tool" in event && event.tool !== undefined ? { "agentauth.tool": event.tool } : {};
  if (!("server" in event)) return tool;
  const { hostname, port, protocol } = new URL(event.server);
  return { "server.address": hostname, "server.port": Number(port || (protocol === "https:" ? 443 : 80)) };
}
