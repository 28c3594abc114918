// The extension for tasks: a tool that takes long returns a task, which the client asks for, answers and cancels. The SDK
// reserves its names and checks its headers, and leaves the rest to the server.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const EXTENSION = "io.modelcontextprotocol/tasks";

/** The capability of a server with {@link addTasks}. */
export const TASKS_CAPABILITY = { [EXTENSION]: {} };

const tasks = new Map();
const text = (content) => ({ content: [{ type: "text", text: content }] });
const isNegotiated = ({ mcpReq }) =>
  mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"]?.extensions?.[EXTENSION] !== undefined;

/** Registers the methods and the tools; before any other tool, and on a server that declares no tools when it is created. */
export function addTasks(server, sdk, add) {
  const missing = () =>
    new sdk.MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: TASKS_CAPABILITY } });
  const required = new Set(["failing_job", "test_tool_with_task"]);
  const { server: inner } = server;
  const set = inner.setRequestHandler.bind(inner);
  // What a tool throws becomes a result of the tool: this error is one of the protocol.
  inner.setRequestHandler = (method, handler, ...more) =>
    set(
      method,
      method !== "tools/call"
        ? handler
        : (request, context) => {
            if (required.has(request.params.name) && !isNegotiated(context)) throw missing();
            return handler(request, context);
          },
      ...more,
    );
  const method = (name, answer) => {
    const params = sdk.fromJsonSchema({
      type: "object",
      properties: { taskId: { type: "string" } },
      required: ["taskId"],
    });
    set(name, { params }, (given, context) => {
      if (!isNegotiated(context)) throw missing();
      const task = tasks.get(given.taskId);
      if (!task) throw new sdk.ProtocolError(-32602, "there is no such task");
      return { resultType: "complete", ...answer(task, given.inputResponses ?? context.mcpReq.inputResponses ?? {}) };
    });
  };
  method("tasks/get", ({ shown }) => shown);
  method("tasks/cancel", (task) => {
    task.controller.abort();
    return {};
  });
  method("tasks/update", (task, responses) => {
    task.answer(responses);
    return {};
  });
  addTaskTools(add, sdk);
}

function addTaskTools(add, sdk) {
  const object = (properties) => ({ type: "object", properties });
  const elicit = (message, name) =>
    sdk.inputRequired.elicit({ message, requestedSchema: object({ [name]: { type: "string" } }) });
  /** Runs at once where the client has not negotiated tasks. */
  const long = (work) => (args, context) => {
    if (isNegotiated(context)) return createTask((own) => work(args, own));
    return work(args, { signal: context.mcpReq.signal, ask: async () => ({}) });
  };
  add("greet", ({ name }) => text(`Hello, ${name}!`), object({ name: { type: "string" } }));
  const slow = async ({ seconds = 1 }, { signal }) => {
    await sleep(seconds * 1000, undefined, { signal });
    return text(`computed for ${seconds} s`);
  };
  add("slow_compute", long(slow), object({ seconds: { type: "number" } }));
  const failing = async (_args, { signal }) => {
    await sleep(1000, undefined, { signal });
    return { ...text("the job failed"), isError: true };
  };
  add("failing_job", long(failing));
  const breaking = async () => {
    throw new Error("the job broke the protocol");
  };
  add("protocol_error_job", long(breaking));
  const confirming = async (_args, { ask }) =>
    text(JSON.stringify(await ask({ confirm: elicit("Delete it?", "answer") })));
  add("confirm_delete", long(confirming), object({ filename: { type: "string" } }));
  const asking = async (_args, { ask }) =>
    text(JSON.stringify(await ask({ first: elicit("First?", "answer"), second: elicit("Second?", "answer") })));
  add("multi_input", long(asking));
  add("test_tool_with_task", (_args, { mcpReq }) => {
    const answer = mcpReq.inputResponses?.user_name;
    if (answer === undefined)
      return sdk.inputRequired({ inputRequests: { user_name: elicit("What is your name?", "name") } });
    return createTask(async () => text(`Hello, ${JSON.stringify(answer)}`));
  });
}

/** Starts the work, and returns the task as the result of the tool. */
function createTask(work) {
  const controller = new AbortController();
  const { signal } = controller;
  const createdAt = new Date().toISOString();
  const shown = {
    taskId: randomUUID(),
    status: "working",
    createdAt,
    lastUpdatedAt: createdAt,
    ttlMs: 60_000,
    pollIntervalMs: 100,
  };
  const created = { resultType: "task", ...shown };
  const become = (status, more) => Object.assign(shown, { status, lastUpdatedAt: new Date().toISOString(), ...more });
  const task = { shown, controller, answer: () => {} };
  const ask = (requests) =>
    new Promise((resolve, reject) => {
      const pending = { ...requests };
      const answers = {};
      become("input_required", { inputRequests: pending });
      signal.addEventListener("abort", () => reject(signal.reason));
      task.answer = (responses) => {
        for (const [key, response] of Object.entries(responses)) {
          if (pending[key] === undefined) continue;
          answers[key] = response;
          delete pending[key];
        }
        if (Object.keys(pending).length > 0) return;
        delete shown.inputRequests;
        become("working");
        resolve(answers);
      };
    });
  tasks.set(shown.taskId, task);
  work({ signal, ask }).then(
    (result) => become("completed", { result }),
    (error) => {
      delete shown.inputRequests;
      if (signal.aborted) become("cancelled");
      else become("failed", { error: { code: -32603, message: error.message } });
    },
  );
  return created;
}
