// A protected server with Node's http module only.
//
//   RESOURCE=http://127.0.0.1:3000/api ISSUER=https://auth.example/pool_1 npx tsx examples/resource-server-node.ts
import { createServer, type IncomingMessage } from "node:http";
import { type AuthInfo, createResourceServer } from "agentauth/resource-server";

const { RESOURCE: resource = "", ISSUER: issuer = "" } = process.env;
const guard = createResourceServer({ resource, authorizationServers: [issuer] }).middleware();

const server = createServer((request, response) =>
  guard(request, response, (error) => {
    const { auth } = request as IncomingMessage & { auth?: AuthInfo };
    if (error || auth === undefined) {
      response.writeHead(500).end();
      return;
    }
    const { clientId, scopes, expiresAt, extra } = auth;
    const body = JSON.stringify({ subject: extra.subject, clientId, scopes, expiresAt });
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  }),
);
server.listen(Number(new URL(resource).port), "127.0.0.1", () => console.log(`listening at ${resource}`));
