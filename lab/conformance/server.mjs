// The tools, prompts and resources that the server scenarios of the official suite ask for, on the SDK that the sandbox
// runs on. Their names and texts are the suite's.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { memorySkillFiles, SkillsExtension } from "@modelcontextprotocol/server/ext/skills";
import { DEFAULTS, ENUMS, SCHEMA_2020_12 } from "./schemas.mjs";
import { addTasks, TASKS_CAPABILITY } from "./tasks.mjs";

/** A PNG of one pixel, and a WAV without samples. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const manifest = (name) => `---\nname: ${name}\ndescription: The skill ${name}.\n---\n\n# ${name}\n`;
const skills = await SkillsExtension.load(
  memorySkillFiles({
    "reading/SKILL.md": manifest("reading"),
    "reading/references/GUIDE.md": "# Guide\n",
    "writing/SKILL.md": manifest("writing"),
  }),
  // One a page, so that there is a second page.
  { pageSize: 1 },
);

const text = (content) => ({ type: "text", text: content });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri, content, mimeType = "text/plain") => ({
  type: "resource",
  resource: { uri, mimeType, text: content },
});
const said = (...content) => ({ content });
const users = (...contents) => ({ messages: contents.map((content) => ({ role: "user", content })) });
const object = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required });

const STRING = { type: "string" };
const stateKey = randomBytes(32);

/** Creates the server: the option `mcpServer` of the sandbox. */
export function createConformanceServer({ sdk, notify }) {
  const { McpServer, createRequestStateCodec } = sdk;
  const states = createRequestStateCodec({ key: stateKey });
  const server = new McpServer(
    { name: "sandbox-conformance", version: "1.0.0" },
    {
      capabilities: {
        logging: {},
        completions: {},
        prompts: { listChanged: true },
        resources: { subscribe: true },
        extensions: TASKS_CAPABILITY,
      },
      requestState: { verify: states.verify },
    },
  );
  const add = (name, run, inputSchema = object({})) =>
    server.registerTool(name, { description: `For ${name}.`, inputSchema: sdk.fromJsonSchema(inputSchema) }, run);
  addTasks(server, sdk, add);
  addContentTools(add);
  addStreamTools(add, notify);
  addInputTools(add, sdk, states);
  addPrompts(server, sdk);
  addResources(server, sdk);
  skills.attach(server);
  return server;
}

function addContentTools(add) {
  add("test_simple_text", () => said(text("This is a simple text response for testing.")));
  add("test_image_content", () => said(image));
  add("test_audio_content", () => said({ type: "audio", data: WAV, mimeType: "audio/wav" }));
  add("test_embedded_resource", () =>
    said(embedded("test://embedded-resource", "This is an embedded resource content.")),
  );
  add("test_multiple_content_types", () =>
    said(
      text("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
  );
  add("test_error_handling", () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  add("json_schema_2020_12_tool", ({ name }) => said(text(`Hello, ${name ?? "World"}`)), SCHEMA_2020_12);
  add(
    "test_custom_headers",
    ({ region }) => said(text(`region: ${region}`)),
    object({ region: { ...STRING, "x-mcp-header": "Region" } }),
  );
}

function addStreamTools(add, notify) {
  add("test_tool_with_logging", async (_args, { mcpReq }) => {
    for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.log("info", line);
      await sleep(50);
    }
    return said(text("logged"));
  });
  add("test_logging_tool", async (_args, { mcpReq }) => {
    await mcpReq.log("info", "a message for clients that ask for messages");
    return said(text("logged"));
  });
  add("test_tool_with_progress", async (_args, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      const params = { progressToken, progress, total: 100 };
      if (progressToken !== undefined) await mcpReq.notify({ method: "notifications/progress", params });
      await sleep(50);
    }
    return said(text("done"));
  });
  add("test_reconnection", async (_args, { http }) => {
    http?.closeSSE?.();
    await sleep(200);
    return said(text("sent on the resumed stream"));
  });
  add("test_trigger_tool_change", () => {
    notify.toolsChanged();
    return said(text("announced"));
  });
  add("test_trigger_prompt_change", () => {
    notify.promptsChanged();
    return said(text("announced"));
  });
}

/** Tools that ask the client: in the result from revision 2026-07-28 on, with a request of the server's own before. */
function addInputTools(add, sdk, states) {
  const { inputRequired } = sdk;
  const elicit = (message, properties, required) =>
    inputRequired.elicit({ message, requestedSchema: object(properties, required) });
  const sample = (prompt, maxTokens = 100) =>
    inputRequired.createMessage({ messages: [{ role: "user", content: text(prompt) }], maxTokens });
  /** Asks until the client has answered every request, then returns the result of `done`. */
  const asking = (requests, done, state) => async (args, context) => {
    const { inputResponses = {} } = context.mcpReq;
    const inputRequests = requests(args, context);
    if (Object.keys(inputRequests).every((key) => key in inputResponses)) return done(inputResponses, context);
    return inputRequired({ inputRequests, ...(state && { requestState: await states.mint(state) }) });
  };
  const shown = (label, key) => (answers) => said(text(`${label}: ${JSON.stringify(answers[key])}`));

  add(
    "test_sampling",
    asking(({ prompt }) => ({ answer: sample(prompt) }), shown("LLM response", "answer")),
    object({ prompt: STRING }),
  );
  const person = { username: { ...STRING, description: "User's response" }, email: STRING };
  add(
    "test_elicitation",
    asking(({ message }) => ({ answer: elicit(message, person) }), shown("User response", "answer")),
    object({ message: STRING }),
  );
  for (const [name, properties] of [
    ["test_elicitation_sep1034_defaults", DEFAULTS],
    ["test_elicitation_sep1330_enums", ENUMS],
  ]) {
    const request = () => ({ answer: elicit("Please choose", properties, []) });
    add(name, asking(request, shown("Elicitation completed", "answer")));
  }

  const named = () => ({ user_name: elicit("What is your name?", { name: STRING }) });
  const confirm = () => ({ confirm: elicit("Please confirm", { ok: { type: "boolean" } }) });
  add("test_input_required_result_elicitation", asking(named, shown("Hello", "user_name")));
  add("test_streaming_elicitation", asking(named, shown("Hello", "user_name")));
  add(
    "test_input_required_result_sampling",
    asking(() => ({ capital_question: sample("What is the capital of France?") }), shown("Answer", "capital_question")),
  );
  add(
    "test_input_required_result_list_roots",
    asking(() => ({ client_roots: inputRequired.listRoots() }), shown("Roots", "client_roots")),
  );
  add(
    "test_input_required_result_request_state",
    asking(confirm, () => said(text("state-ok")), { step: 1 }),
  );
  add(
    "test_input_required_result_tampered_state",
    asking(confirm, () => said(text("state-ok")), { step: 1 }),
  );
  add(
    "test_input_required_result_multiple_inputs",
    asking(
      () => ({ ...named(), greeting: sample("Generate a greeting", 50), client_roots: inputRequired.listRoots() }),
      shown("Greeting", "greeting"),
      { step: 1 },
    ),
  );
  add("test_input_required_result_multi_round", async (_args, { mcpReq }) => {
    const { step = 0 } = mcpReq.requestState() ?? {};
    if (step === 2) return said(text("three rounds"));
    const requests = [
      { step1: elicit("Step 1: What is your name?", { name: STRING }) },
      { step2: elicit("Step 2: What is your favorite color?", { color: STRING }) },
    ];
    return inputRequired({ inputRequests: requests[step], requestState: await states.mint({ step: step + 1 }) });
  });
  const declared = ({ mcpReq }) => mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
  add(
    "test_input_required_result_capabilities",
    asking(
      (_args, context) => ({
        ...(declared(context).sampling && { answer: sample("What is the capital of France?") }),
        ...(declared(context).elicitation && named()),
      }),
      () => said(text("answered")),
    ),
  );
  // The SDK rejects a request for what the client has not declared.
  add("test_missing_capability", () => inputRequired({ inputRequests: { answer: sample("Hello") } }));
}

function addPrompts(server, sdk) {
  const add = (name, run, properties) =>
    server.registerPrompt(
      name,
      { description: `For ${name}.`, ...(properties && { argsSchema: sdk.fromJsonSchema(object(properties)) }) },
      run,
    );
  add("test_simple_prompt", () => users(text("This is a simple prompt for testing.")));
  add(
    "test_prompt_with_arguments",
    ({ arg1, arg2 }) => users(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
    { arg1: STRING, arg2: STRING },
  );
  add(
    "test_prompt_with_embedded_resource",
    ({ resourceUri }) =>
      users(
        embedded(resourceUri, "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
      ),
    { resourceUri: STRING },
  );
  add("test_prompt_with_image", () => users(image, text("Please analyze the image above.")));
  add("test_input_required_result_prompt", (context) => {
    const answer = context.mcpReq.inputResponses?.user_context;
    if (answer !== undefined) return users(text(`Context: ${JSON.stringify(answer)}`));
    const requestedSchema = object({ context: STRING });
    const user_context = sdk.inputRequired.elicit({ message: "What context should the prompt use?", requestedSchema });
    return sdk.inputRequired({ inputRequests: { user_context } });
  });
  server.server.setRequestHandler("completion/complete", () => ({ completion: { values: [], hasMore: false } }));
}

function addResources(server, sdk) {
  const add = (name, uri, mimeType, content) =>
    server.registerResource(name, uri, { description: `For ${name}.`, mimeType }, ({ href }) => ({
      contents: [{ uri: href, mimeType, ...content }],
    }));
  add("static text", "test://static-text", "text/plain", { text: "This is the content of the static text resource." });
  add("static binary", "test://static-binary", "image/png", { blob: PNG });
  add("watched", "test://watched-resource", "text/plain", { text: "It never changes." });
  const template = new sdk.ResourceTemplate("test://template/{id}/data", { list: undefined });
  const mimeType = "application/json";
  server.registerResource("template", template, { description: "For a template.", mimeType }, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType, text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }],
  }));
  for (const method of ["resources/subscribe", "resources/unsubscribe"])
    server.server.setRequestHandler(method, () => ({}));
}
