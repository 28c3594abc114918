// A protected server with Node's http module only.
//
//   RESOURCE=http://127.0.0.1:3000/api ISSUER=https://auth.example/pool_1 node examples/resource-server-node.mjs
import { createServer } from "node:http";
import { createResourceServer } from "agentauth/resource-server";

const { RESOURCE: resource = "", ISSUER: issuer = "" } = process.env;
const guard = createResourceServer({ resource, authorizationServers: [issuer] }).middleware();

const server = createServer((request, response) =>
  guard(request, response, (error) => {
    if (error) return response.writeHead(500).end();
    const { clientId, scopes, expiresAt, extra } = request.auth;
    const body = JSON.stringify({ subject: extra.subject, clientId, scopes, expiresAt });
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  }),
);
server.listen(new URL(resource).port, "127.0.0.1", () => console.log(`listening at ${resource}`));
